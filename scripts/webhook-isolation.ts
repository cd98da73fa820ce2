/**
 * `node scripts/webhook-isolation.ts`: measures whether a webhook receiver that hangs on every request delays mail, or the
 * events of another receiver.
 *
 *   --mails 200      mails to measure, one every --every 25 ms
 *   --backlog 1000   mails before that, whose events pile up for the receiver that hangs
 *   --others 1       number of endpoints that hang
 *   --rounds 3       each round measures each case once; the figures are medians of the rounds
 *   --set NAME=VALUE a Postern setting; may be repeated
 *   --json           print all results as JSON
 *
 * Two cases: an endpoint and others, all of which answer; the same, but the others accept every request and never answer.
 * Each case has its own Postern process. Measured are the time from the API's 200 until the mail is at its MX host, and the
 * time from that 200 until the event email.queued is at the endpoint that answers. Everything must arrive, and both p95 must
 * be less than twice those of the case in which all answer; a p95 below 5 ms counts as 5 ms.
 *
 * Exits 0 if that is so, 1 if not. Leaves nothing behind, not even after Ctrl-C.
 */
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import Table from 'cli-table3';
import { createSeal } from '../src/accounts/seal.ts';
import { fixedSecrets } from '../src/base/secrets.ts';
import { addWebhook } from '../src/webhooks/endpoints.ts';
import { startDns } from '../test/lab/dns/dns.ts';
import { median, ms, progress, quantile } from '../test/lab/load/figures.ts';
import { recipients, type Sent, sendAll } from '../test/lab/load/load.ts';
import { perform, readOptions, type Stage, settingsOf } from '../test/lab/load/stage.ts';
import { startSink } from '../test/lab/mx/sink.ts';
import { launchPostern } from '../test/lab/scenes/postern.ts';
import { until } from '../test/lab/until.ts';

const given = readOptions('node scripts/webhook-isolation.ts [--mails N] [--others N] … (see its header)', {
  mails: { type: 'string', default: '200' },
  every: { type: 'string', default: '25' },
  backlog: { type: 'string', default: '1000' },
  others: { type: 'string', default: '1' },
  rounds: { type: 'string', default: '3' },
  set: { type: 'string', multiple: true, default: [] },
  json: { type: 'boolean', default: false },
});
const [mails, every, backlog, others, rounds] = [
  given.mails,
  given.every,
  given.backlog,
  given.others,
  given.rounds,
].map(Number) as [number, number, number, number, number];

const exchanger = '127.0.0.2';
const timeoutMs = 120_000;
const secret = 'the secret of this measurement';

interface Measured {
  hangs: boolean;
  /** Times from the 200 to the final dot, and to the event at the endpoint that answers. */
  toExchanger: number[];
  toEndpoint: number[];
  missing: number;
  rssMb: number;
}

const now = () => performance.timeOrigin + performance.now();

/** A receiver that records when each recipient's email.queued arrived, and answers; or one that never answers. */
async function startEndpoint(stage: Stage, answers: boolean) {
  const arrivals = new Map<string, number>();
  const listener: RequestListener = async (request, response) => {
    const { type, data } = JSON.parse(await text(request));
    if (!answers) return;
    if (type === 'email.queued') arrivals.set(data.recipient, now());
    response.writeHead(204).end();
  };
  const server = createServer(listener).listen(0, '127.0.0.1');
  await stage.start(once(server, 'listening'), async () => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, arrivals };
}

async function measure(stage: Stage, hangs: boolean, round: string): Promise<Measured> {
  const sink = await stage.start(startSink([{ host: exchanger }]), (it) => it.stop());
  const zone = { 'there.invalid': { MX: ['10 mx.invalid'] }, 'mx.invalid': { A: [exchanger] } };
  const dns = await stage.start(startDns(zone), (it) => it.close());
  const settings = {
    POSTERN_WEBHOOK_ALLOW_PRIVATE: 'true',
    POSTERN_SECRET: secret,
    ...settingsOf(given.set),
  };
  const postern = await launchPostern(stage, { dns, mtaPort: sink.port, settings });
  const { arrivals, url } = await startEndpoint(stage, true);
  const urls = [url];
  for (let n = 0; n < others; n++) urls.push((await startEndpoint(stage, !hangs)).url);
  const [{ id: orgId }] = await postern.db('organizations').select('id');
  const terms = { seal: createSeal(fixedSecrets(secret)), allowPrivate: true, now: Date.now() };
  for (const each of urls) await addWebhook(postern.db, { orgId, url: each, types: [] }, terms);

  const load = { ...postern, interrupted: stage.interrupted };
  const arrived = (count: number) =>
    until(async () => (await sink.count(exchanger)) === count && arrivals.size === count, {
      timeout: timeoutMs,
      what: () => `${count} mails and their events; there were ${arrivals.size} events`,
    });
  await sendAll({ ...load, to: recipients('there.invalid', backlog, 'early') });
  await arrived(backlog);
  // Lets the aftermath of the load end.
  await sleep(2000);
  const sent = await sendAll({ ...load, to: recipients('there.invalid', mails, 'mail'), intervalMs: every });
  await arrived(backlog + mails).catch(() => {});
  const { taken } = await sink.books();
  const exchanged = new Map(taken.map(({ to, at }) => [to, at]));
  const after = (times: Map<string, number>) =>
    // The mail may arrive before the client has read the 200.
    sent
      .filter(({ to }) => times.has(to))
      .map((one: Sent) => Math.max(times.get(one.to)! - one.answeredAt, 0));
  const toExchanger = after(exchanged);
  const toEndpoint = after(arrivals);
  const missing = 2 * sent.length - toExchanger.length - toEndpoint.length;
  progress(
    `${round}, ${hangs ? others : 0} that hang: p95 to the exchanger ${ms(quantile(toExchanger, 0.95))}, ` +
      `to the endpoint ${ms(quantile(toEndpoint, 0.95))}, ${missing} missing`,
  );
  return { hangs, toExchanger, toEndpoint, missing, rssMb: await postern.rssMb() };
}

const countable = (time: number) => Math.max(time, 5);

function judge(all: Measured[]) {
  const figuresOf = (hangs: boolean) => {
    const own = all.filter((one) => one.hangs === hangs);
    const over = (figure: (one: Measured) => number) => median(own.map(figure));
    return {
      hanging: hangs ? others : 0,
      mailMedian: over(({ toExchanger }) => median(toExchanger)),
      mailP95: over(({ toExchanger }) => quantile(toExchanger, 0.95)),
      eventMedian: over(({ toEndpoint }) => median(toEndpoint)),
      eventP95: over(({ toEndpoint }) => quantile(toEndpoint, 0.95)),
      missing: Math.max(...own.map(({ missing }) => missing)),
      rssMb: over(({ rssMb }) => rssMb),
    };
  };
  const [without, beside] = [figuresOf(false), figuresOf(true)];
  const ratios = {
    mail: countable(beside.mailP95) / countable(without.mailP95),
    events: countable(beside.eventP95) / countable(without.eventP95),
  };
  const faults = Object.entries(ratios)
    .filter(([, ratio]) => !(ratio < 2))
    .map(
      ([what, ratio]) => `the p95 of ${what} is ${ratio.toFixed(2)} times that without a receiver that hangs`,
    );
  const missing = without.missing + beside.missing;
  if (missing > 0) faults.push(`${missing} mails or events did not arrive`);
  return { figures: [without, beside], ratios, faults };
}

let judged: ReturnType<typeof judge> | undefined;
const faults = await perform('webhook-isolation', async (stage) => {
  const all: Measured[] = [];
  for (let round = 1; round <= rounds; round++) {
    for (const hangs of [false, true]) {
      all.push(await stage.scene((scene) => measure(scene, hangs, `round ${round} of ${rounds}`)));
    }
  }
  judged = judge(all);
  return judged.faults;
});
if (given.json) console.log(JSON.stringify({ ...judged, faults }, null, 2));
else {
  const table = new Table({
    head: [
      'receivers that hang',
      '200 to MX: median',
      'p95',
      '200 to endpoint: median',
      'p95',
      'missing',
      'RSS',
    ],
    style: { head: [], border: [] },
  });
  for (const one of judged?.figures ?? []) {
    const times = [one.mailMedian, one.mailP95, one.eventMedian, one.eventP95].map(ms);
    table.push([one.hanging, ...times, one.missing, `${one.rssMb} MB`]);
  }
  console.log(table.toString());
  if (judged) {
    const { mail, events } = judged.ratios;
    console.log(`Ratio of the p95: mail ${mail.toFixed(2)}, events ${events.toFixed(2)}.`);
  }
  console.log(faults.length === 0 ? 'It holds.' : `It does not hold:\n  ${faults.join('\n  ')}`);
}
process.exit(faults.length === 0 ? 0 : 1);
