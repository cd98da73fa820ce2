/** What the form has in it at first: a mail that looks like one, so that filters judge it as they would the real ones. */
export function testMail(organization: string) {
  return {
    local: 'test',
    subject: `A test from ${organization}`,
    text: `Hello,

this is a test of ${organization}'s mail, sent by hand.
If you can read it, it has arrived.
`,
    html: `<!doctype html>
<html lang="en">
  <body style="font-family: sans-serif; line-height: 1.5">
    <h1 style="font-size: 20px">Hello,</h1>
    <p>this is a test of ${escaped(organization)}'s mail, sent by hand.</p>
    <p>If you can read it, it has arrived.</p>
  </body>
</html>
`,
  };
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
