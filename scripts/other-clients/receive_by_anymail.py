# A Django site with Anymail's inbound views. Reads {port, settings}; prints "ready", then for each mail what Anymail made of it.
import json, sys
from wsgiref.simple_server import WSGIRequestHandler, make_server
from django.conf import settings

given = json.loads(sys.stdin.readline())
settings.configure(
    ROOT_URLCONF=__name__, ALLOWED_HOSTS=['*'], SECRET_KEY='x', INSTALLED_APPS=['anymail'], ANYMAIL=given['settings'],
    DATA_UPLOAD_MAX_MEMORY_SIZE=None, LOGGING_CONFIG=None,
)
import django
django.setup()
from anymail.signals import inbound
from django.core.wsgi import get_wsgi_application
from django.urls import include, path

urlpatterns = [path('anymail/', include('anymail.urls'))]

def tell(sender, event, esp_name, **_):
    mail = event.message
    files = mail.attachments + list(mail.inline_attachments.values())
    print(json.dumps({
        'service': esp_name, 'from': str(mail.from_email), 'to': [str(one) for one in mail.to],
        'sender': mail.envelope_sender, 'recipient': mail.envelope_recipient, 'subject': mail.subject,
        'text': mail.text, 'html': mail.html, 'reply': mail.stripped_text,
        'files': sorted([one.get_filename(), one.get_content_type(), one.get_content_bytes().hex()] for one in files),
        'header': mail['X-Order'],
    }), flush=True)

inbound.connect(tell, weak=False)

class Quiet(WSGIRequestHandler):
    def log_message(self, *_): pass

server = make_server('127.0.0.1', given['port'], get_wsgi_application(), handler_class=Quiet)
print('ready', flush=True)
server.serve_forever()
