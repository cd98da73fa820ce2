/** Messages as Python's `email` package reads them: the tree of their parts, as plain data. All in one process. */
import { spawnSync } from 'node:child_process';

const program = `
import base64, email, json, sys
def tree(part):
    children = [tree(one) for one in part.get_payload()] if part.is_multipart() else None
    content = None if children is not None else part.get_payload(decode=True).decode('latin-1')
    param = lambda name: part.get_param(name) and email.utils.collapse_rfc2231_value(part.get_param(name)).lower()
    return {'type': part.get_content_type(), 'charset': part.get_content_charset(), 'method': param('method'),
        'related': param('type'), 'disposition': part.get_content_disposition(), 'filename': part.get_filename(),
        'contentId': part.get('content-id'), 'content': content, 'children': children}
messages = [base64.b64decode(one) for one in json.load(sys.stdin)]
print(json.dumps([tree(email.message_from_bytes(one)) for one in messages]))
`;

export interface PythonPart {
  type: string;
  content: string | null;
  children: PythonPart[] | null;
}

export const hasPython = spawnSync('python3', ['-c', 'import email']).status === 0;

export function readWithPython(messages: Buffer[]): PythonPart[] {
  const input = JSON.stringify(messages.map((raw) => raw.toString('base64')));
  const { stdout, stderr, status } = spawnSync('python3', ['-c', program], {
    input,
    maxBuffer: 256 * 1024 * 1024,
  });
  if (status !== 0) throw new Error(String(stderr));
  return JSON.parse(String(stdout));
}
