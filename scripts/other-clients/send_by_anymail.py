"""Sends one email by Django Anymail: the job is JSON on standard input, the outcome JSON on standard output."""
import json
import sys

from django.conf import settings

job = json.load(sys.stdin)
settings.configure(EMAIL_BACKEND=job["backend"], ANYMAIL=job["settings"], USE_TZ=True)

import django

django.setup()
from anymail.message import AnymailMessage

mail = job["mail"]
message = AnymailMessage(
    mail["subject"],
    mail["text"],
    mail["from"],
    mail["to"],
    cc=mail["cc"],
    bcc=mail["bcc"],
    reply_to=mail["replyTo"],
    headers=mail["headers"],
    metadata=mail["metadata"],
    tags=[mail["tag"]],
)
if mail["html"]:
    image = message.attach_inline_image(b"png", "logo.png", subtype="png")
    message.attach_alternative(mail["html"].replace("logo.png", image), "text/html")
    message.attach("terms of use.txt", "Terms", "text/plain")
try:
    message.send()
    status = sorted(message.anymail_status.status)
    print(json.dumps({"ok": True, "said": ", ".join(status)}))
except Exception as error:
    words = str(error).replace("\n", " ")
    print(json.dumps({"ok": False, "said": f"{type(error).__name__}: {words}"}))
