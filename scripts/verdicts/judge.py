# Reads {zone, mails: [{file, peer, helo, sender}]}; prints for each mail a line of JSON: pyspf's result, and dkimpy's of each
# signature, from the top.
import json, sys
import dkim, spf

given = json.load(sys.stdin)
zone = {name.lower(): entry for name, entry in given['zone'].items()}

def find(name, kind, hops=8):
    entry = zone.get(name.lower().rstrip('.'))
    if entry is None: return []
    if isinstance(entry, str): raise spf.TempError(f'DNS {entry}')
    if kind not in entry and 'CNAME' in entry:
        if hops == 0: raise spf.TempError('DNS loop')
        return find(entry['CNAME'][0], kind, hops - 1)
    found = entry.get(kind, [])
    if isinstance(found, str): raise spf.TempError(f'DNS {found}')
    return found

def data(kind, value):
    if kind == 'MX':
        preference, host = value.split()
        return (int(preference), host)
    if kind != 'TXT': return value
    octets = value.encode()
    return tuple(octets[at:at + 255] for at in range(0, len(octets), 255)) or (b'',)

spf.DNSLookup = lambda name, kind, strict=True, timeout=20: [((name, kind), data(kind, one)) for one in find(name, kind)]

def key(name, timeout=5):
    found = find(name.decode(), 'TXT')
    return found[0].encode() if found else None

def passes(message, index):
    try: return dkim.DKIM(message).verify(index, dnsfunc=key)
    except Exception: return False

for mail in given['mails']:
    message = open(mail['file'], 'rb').read()
    count = sum(name.lower() == b'dkim-signature' for name, _ in dkim.DKIM(message).headers)
    sender = mail['sender']
    result = spf.query(i=mail['peer'], s=sender, h=mail['helo'], strict=True).check()[0]
    print(json.dumps({'spf': result, 'dkim': [passes(message, index) for index in range(count)]}))
