/**
 * The endpoints for monitoring. They are not part of the public API and have none of its keys, limits and errors:
 *
 *   /metrics        for Prometheus; operate/metrics/metrics-access.ts decides who may read it
 *   /health/live    the process is up
 *   /health/ready   mail can be accepted, or why not (503)
 *
 * Every other request is passed on to the API.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { accessOf } from '#operate/metrics/metrics-access.ts';
import type { Health } from './health.ts';

export interface ProbeParts {
  health: Health;
  /** POSTERN_METRICS_TOKEN, if set. */
  token: string | null;
  /** The current metrics. */
  print(): Promise<{ type: string; text: string }>;
  onError(what: string, error: unknown): void;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

interface Reply {
  status: number;
  type: string;
  text: string;
  headers?: Record<string, string>;
}

/** Null: the API answers instead, with its own 404. */
type Probe = (request: IncomingMessage) => Promise<Reply | null>;

export const probePaths = ['/health/live', '/health/ready', '/metrics'] as const;

export function createProbes(parts: ProbeParts): (next: Handler) => Handler {
  const own: Record<(typeof probePaths)[number], Probe> = {
    '/health/live': async () => json(200, { status: 'ok' }),
    '/health/ready': () => ready(parts.health),
    '/metrics': (request) => metrics(parts, request),
  };
  const probes = new Map<string, Probe>(Object.entries(own));
  return (next) => async (request, response) => {
    const probe = probes.get(request.url!.split('?', 1)[0]!);
    const reply = probe && (await replyOf(probe, request, parts.onError));
    if (reply) answer(request, response, reply);
    else await next(request, response);
  };
}

async function replyOf(
  probe: Probe,
  request: IncomingMessage,
  onError: ProbeParts['onError'],
): Promise<Reply | null> {
  try {
    const reply = await probe(request);
    if (!reply || request.method === 'GET' || request.method === 'HEAD') return reply;
    return { ...text(405, 'This path allows only GET and HEAD.\n'), headers: { Allow: 'GET, HEAD' } };
  } catch (error) {
    onError(`${request.url} could not be answered`, error);
    return text(500, 'Internal error; the log has the reason.\n');
  }
}

async function ready(health: Health): Promise<Reply> {
  const reasons = await health.reasons();
  return reasons.length === 0 ? json(200, { status: 'ok' }) : json(503, { status: 'unavailable', reasons });
}

async function metrics({ token, print }: ProbeParts, request: IncomingMessage): Promise<Reply | null> {
  const access = accessOf(request, token);
  if (access === 'hidden') return null;
  if (access === 'granted') return { status: 200, ...(await print()) };
  const headers = { 'WWW-Authenticate': 'Bearer realm="metrics"' };
  return { ...text(401, 'The metrics need the token of POSTERN_METRICS_TOKEN.\n'), headers };
}

function answer(request: IncomingMessage, response: ServerResponse, reply: Reply): void {
  // The rest of an unread body would be parsed as the next request.
  if (!request.complete && hasBody(request)) response.setHeader('Connection', 'close');
  response.writeHead(reply.status, {
    'Content-Type': reply.type,
    'Content-Length': Buffer.byteLength(reply.text),
    'Cache-Control': 'no-store',
    ...reply.headers,
  });
  response.end(request.method === 'HEAD' ? undefined : reply.text);
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}

const json = (status: number, body: object): Reply => ({
  status,
  type: 'application/json; charset=utf-8',
  text: `${JSON.stringify(body)}\n`,
});

const text = (status: number, words: string): Reply => ({
  status,
  type: 'text/plain; charset=utf-8',
  text: words,
});
