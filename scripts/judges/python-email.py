# Prints the defects that Python finds in the mail of each file.
import email, email.policy, sys
for name in sys.argv[1:]:
    message = email.message_from_bytes(open(name, 'rb').read(), policy=email.policy.default)
    found = []
    for part in message.walk():
        found += [type(one).__name__ for one in part.defects]
        for field, value in part.items():
            found += [field + ': ' + type(one).__name__ for one in getattr(value, 'defects', [])]
    print('\t'.join(found) or '-')
