/** The form's default content. It looks like a real email, so that spam filters treat it like one. */
import { escapeHtml } from '#platform/base/sanitize.ts';

export function testMail(organization: string) {
  return {
    local: 'test',
    subject: `A test from ${organization}`,
    text: `Hello,

this is a test email from ${organization}.
If you can read it, it was delivered.
`,
    html: `<!doctype html>
<html lang="en">
  <body style="font-family: sans-serif; line-height: 1.5">
    <h1 style="font-size: 20px">Hello,</h1>
    <p>this is a test email from ${escapeHtml(organization)}.</p>
    <p>If you can read it, it was delivered.</p>
  </body>
</html>
`,
  };
}
