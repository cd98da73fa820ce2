/**
 * `context.state`: what the steps of a request leave for later ones. Each member is written once, where its comment says; the
 * last steps (the response to a refusal, the mail log) read them also if an earlier step has refused the request.
 */
import type { Caller } from '#accounts/api-keys.ts';
import type { Window } from '#accounts/limits.ts';
import type { PageVisit } from '#front/dashboard/page.ts';
import type { Credential } from '#front/http/authorize.ts';
import type { AdmitCaller } from '#front/http/server-busy.ts';
import type { Refusal } from '#platform/values/refusal.ts';

declare module 'koa' {
  interface DefaultState {
    /** platform/base/net/client-address.ts */
    client: string;
    /** front/api/api-app.ts, front/dashboard/security/security-headers.ts */
    requestId: string;
    /** front/http/server-busy.ts */
    admitCaller?: AdmitCaller;
    /** front/dialects/serve-dialects.ts: of its service; null: the request has none. */
    credential?: Credential | null;
    /** front/dialects/serve-dialects.ts: writes errors in the form of its service. */
    writeRefusal?: (context: Context, refusal: Refusal) => void;
    /** front/dialects/dialect.ts: the parameters of the query that the call reads. */
    readQuery?: { parameters: string[]; nameOf: ((given: string) => string) | undefined };
    /** front/http/authorize.ts: who calls, if the call is a send. */
    sender?: Caller;
    /** front/http/authorize.ts: the organization whose request was counted, and its windows. */
    orgId?: string;
    rateWindows?: Window[];
    /** front/http/authorize.ts: the requests of the day that a batch counts as. */
    requests?: number;
    /** The routes of sends: the body as it was given. */
    sent?: unknown;
    /** front/dashboard/dashboard.ts */
    visit?: PageVisit;
    /** front/dashboard/dashboard.ts: whether the visitor still has the right to this page. */
    isStillAllowed?: () => Promise<boolean>;
  }
}
