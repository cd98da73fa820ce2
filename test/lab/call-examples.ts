/** Bodies that are taken, for routes whose members no table has. A form is an object of its fields. */
const from = 'app@sender.invalid';
const to = 'ann@there.invalid';
const subject = 'Hi';
const file = { filename: 'a.png', content: 'aGk=' };

const resend = {
  from,
  to: [to],
  cc: [],
  bcc: [],
  reply_to: [from],
  subject,
  html: '<p>Hi</p>',
  text: 'Hi',
  headers: { 'X-A': 'b' },
  tags: [{ name: 'a', value: 'b' }],
  attachments: [{ ...file, content_type: 'image/png', content_id: 'a' }],
  scheduled_at: null,
  topic_id: null,
  template: null,
};

const postmark = {
  From: from,
  To: to,
  Cc: '',
  Bcc: '',
  ReplyTo: from,
  Subject: subject,
  HtmlBody: '<img src="cid:a">',
  TextBody: 'Hi',
  Tag: 'a',
  Metadata: { a: 'b' },
  Headers: [{ Name: 'X-A', Value: 'b' }],
  TrackLinks: 'None',
  MessageStream: 'outbound',
  Attachments: [{ Name: 'a.png', Content: 'aGk=', ContentType: 'image/png', ContentID: 'a' }],
};

const mailgun = {
  from,
  to,
  cc: '',
  bcc: '',
  subject,
  text: 'Hi',
  html: '<p>Hi</p>',
  'h:X-A': 'b',
  'h:Reply-To': from,
  'h:List-Unsubscribe': '<https://sender.invalid/u>',
  'h:X-Mailgun-Variables': '{"a":"b"}',
  'v:a': 'b',
  'o:tag': 'a',
  'o:tracking': 'no',
  'o:deliverytime': '',
  template: '',
  't:variables': '{}',
  'recipient-variables': '{}',
};

const recipient = { email: to, name: 'Ann' };

export const callExamples: Record<string, unknown> = {
  'POST /email/send': { from, to: [to], subject, text: 'Hi' },
  'POST /email/batch': [{ from, to: [to], subject, text: 'Hi' }],
  'resend POST /emails': resend,
  'resend POST /emails/batch': [resend],
  'resend PATCH /emails/:id': { scheduled_at: 'in 1 hour' },
  'resend POST /domains': { name: 'sender.invalid', open_tracking: false, tls: 'opportunistic' },
  'resend PATCH /domains/:id': { open_tracking: false, click_tracking: false, tls: 'opportunistic' },
  'resend POST /api-keys': { name: 'app', permission: 'none', domain_id: 'sender.invalid' },
  'resend POST /suppressions': { email: 'gone@there.invalid' },
  'resend POST /suppressions/batch/add': { emails: ['gone@there.invalid'] },
  'resend POST /suppressions/batch/remove': { emails: ['gone@there.invalid'], ids: [] },
  'resend POST /webhooks': { endpoint: 'https://hooks.invalid/', events: ['none'] },
  'resend PATCH /webhooks/:id': { events: ['email.sent'], status: 'enabled' },
  'postmark POST /email': postmark,
  'postmark POST /email/batch': [postmark],
  'postmark POST /message-streams/:stream/suppressions': {
    Suppressions: [{ EmailAddress: 'x@there.invalid' }],
  },
  'postmark POST /message-streams/:stream/suppressions/delete': {
    Suppressions: [{ EmailAddress: 'x@there.invalid' }],
  },
  'postmark POST /webhooks': {
    Url: 'https://hooks.invalid/',
    MessageStream: 'outbound',
    HttpAuth: { Username: 'a', Password: 'b' },
    HttpHeaders: [],
    Triggers: { Open: { Enabled: false } },
  },
  'postmark PUT /webhooks/:id': { Url: 'https://hooks.invalid/', Triggers: { Open: { Enabled: true } } },
  'postmark POST /domains': { Name: 'sender.invalid', ReturnPathDomain: '' },
  'postmark PUT /domains/:id': { ReturnPathDomain: '' },
  'sendgrid POST /v3/mail/send': {
    personalizations: [
      {
        to: [recipient],
        cc: [],
        bcc: [],
        subject,
        headers: { 'X-A': 'b' },
        substitutions: { '-a-': 'b' },
        custom_args: { a: 'b' },
        send_at: 0,
      },
    ],
    from: { email: from, name: 'App' },
    reply_to_list: [{ email: from, name: 'App' }],
    subject,
    content: [
      { type: 'text/plain', value: '-a-' },
      { type: 'text/html', value: '<p>-a-</p>' },
    ],
    attachments: [{ ...file, type: 'image/png', disposition: 'inline', content_id: 'a' }],
    headers: { 'X-B': 'b' },
    categories: ['a'],
    custom_args: { b: 'c' },
    mail_settings: { sandbox_mode: { enable: true } },
    tracking_settings: { open_tracking: { enable: false } },
  },
  'sendgrid POST /v3/asm/suppressions/global': { recipient_emails: ['x@there.invalid'] },
  ...Object.fromEntries(
    ['bounces', 'spam_reports', 'unsubscribes', 'blocks', 'invalid_emails'].map((list) => [
      `sendgrid DELETE /v3/suppression/${list}`,
      { emails: ['x@there.invalid'], delete_all: false },
    ]),
  ),
  'mailgun POST /v3/:domain/messages': mailgun,
  'mailgun POST /v3/:domain/messages.mime': {
    to,
    message: `From: ${from}\r\nSubject: Hi\r\n\r\nHi\r\n`,
    'o:tag': 'a',
    'v:a': 'b',
  },
  ...Object.fromEntries(
    ['bounces', 'complaints', 'unsubscribes'].map((list) => [
      `mailgun POST /v3/:domain/${list}`,
      { address: 'x@there.invalid', error: 'none' },
    ]),
  ),
};
