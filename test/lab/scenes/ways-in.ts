/** One mail by each way in: our API, the APIs of the other services, and SMTP. */
import { createTransport } from 'nodemailer';
import type { SubmissionWorld } from './submission.ts';
import type { World } from './world.ts';

export interface GivenFile {
  name: string;
  /** As it is put into the request: Base64. */
  content: string;
  type?: string;
}

interface GivenMail {
  to: string;
  html: string;
  files?: GivenFile[];
}

interface Sent {
  status: number;
  text: string;
}

type Way = (world: SubmissionWorld, mail: GivenMail) => Promise<Sent>;

const from = 'app@sender.invalid';
const subject = 'Hello';

const formOf = (fields: object) => {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  return form;
};

async function post({ url }: World, path: string, headers: object, body: object): Promise<Sent> {
  const isForm = body instanceof FormData;
  const response = await fetch(`${url()}${path}`, {
    method: 'POST',
    headers: { ...headers, ...(!isForm && { 'content-type': 'application/json' }) },
    body: isForm ? body : JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

const bearer = ({ key }: World) => ({ authorization: `Bearer ${key}` });
const basic = ({ key }: World) => ({
  authorization: `Basic ${Buffer.from(`api:${key}`).toString('base64')}`,
});

/** A send by each of the APIs, with the fields that it has. */
export const sendBy = {
  api: (world: World, fields: object) => post(world, '/api/public/email/send', bearer(world), fields),
  resend: (world: World, fields: object) => post(world, '/emails', bearer(world), fields),
  postmark: (world: World, fields: object) =>
    post(world, '/email', { 'x-postmark-server-token': world.key }, fields),
  sendgrid: (world: World, fields: object) => post(world, '/v3/mail/send', bearer(world), fields),
  mailgun: (world: World, fields: object) =>
    post(
      world,
      '/v3/sender.invalid/messages',
      basic(world),
      fields instanceof FormData ? fields : formOf(fields),
    ),
};

const api: Way = (world, { to, html, files = [] }) => {
  const attachments = files.map(({ name, content, type }) => ({
    filename: name,
    content,
    contentType: type,
  }));
  return sendBy.api(world, { from, to, subject, html, attachments });
};

const resend: Way = (world, { to, html, files = [] }) => {
  const attachments = files.map(({ name, content, type }) => ({
    filename: name,
    content,
    content_type: type,
  }));
  return sendBy.resend(world, { from, to, subject, html, attachments });
};

const postmark: Way = (world, { to, html, files = [] }) => {
  const Attachments = files.map(({ name, content, type }) => ({
    Name: name,
    Content: content,
    ContentType: type,
  }));
  return sendBy.postmark(world, { From: from, To: to, Subject: subject, HtmlBody: html, Attachments });
};

const sendgrid: Way = (world, { to, html, files = [] }) =>
  sendBy.sendgrid(world, {
    personalizations: [{ to: [{ email: to }] }],
    from: { email: from },
    subject,
    content: [{ type: 'text/html', value: html }],
    ...(files.length > 0 && {
      attachments: files.map(({ name, content, type }) => ({ filename: name, content, type })),
    }),
  });

const mailgun: Way = (world, { to, html, files = [] }) => {
  const form = formOf({ from, to, subject, html });
  for (const { name, content, type = '' } of files)
    form.append('attachment', new Blob([Buffer.from(content, 'base64')], { type }), name);
  return sendBy.mailgun(world, form);
};

const submission: Way = async ({ ports, key }, { to, html, files = [] }) => {
  const transport = createTransport({
    host: '127.0.0.1',
    port: ports.starttls,
    requireTLS: true,
    auth: { user: 'anybody', pass: key },
    tls: { rejectUnauthorized: false },
  });
  const attachments = files.map(({ name, content, type }) => ({
    filename: name,
    content: Buffer.from(content, 'base64'),
    contentType: type,
  }));
  const { response } = await transport.sendMail({ from, to, subject, html, attachments });
  return { status: Number(response.slice(0, 3)), text: response };
};

export const waysIn: Record<string, Way> = { api, resend, postmark, sendgrid, mailgun, submission };
