# Verifies the DKIM signature of each file with the keys in the first argument (JSON).
import dkim, json, sys
keys = json.loads(sys.argv[1])
def find(name, **named): return keys.get(name.decode().rstrip('.'), '').encode()
for name in sys.argv[2:]:
    passes = dkim.verify(open(name, 'rb').read(), dnsfunc=find)
    print('-' if passes else 'DKIM fails')
