/**
 * GET /llms.txt, and GET /docs: the API reference, which the Scalar component draws from the OpenAPI document, with code
 * samples, search and a request console. The content security policy allows no host except this server: the page loads nothing
 * from elsewhere, reports nothing, and sends the keys that readers type only here.
 */
import { createHash } from 'node:crypto';
import Router from '@koa/router';
import { llmsText } from '#front/api/openapi/llms-text.ts';
import type { Document } from '#front/api/openapi/openapi-types.ts';
import { readReferenceScript } from '#platform/vendor/scalar.ts';

/** The component sets styles inline. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'unsafe-inline'",
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Scalar's own colors have less contrast than WCAG 2 level AA asks for. */
const contrast =
  '.light-mode{--scalar-color-2:#454545;--scalar-color-3:#595959;--scalar-color-green:#03703d;--scalar-color-blue:#0563b8;' +
  '--scalar-color-orange:#a34b00;--scalar-color-yellow:#7a5c00;--scalar-color-red:#b91c1c}' +
  '.dark-mode{--scalar-color-3:#8c8c8c;--scalar-color-red:#ff8589}';

/** The keyboard does not reach boxes that scroll sideways, and Scalar hides the names of the buttons that copy code. */
const reachable =
  'code.custom-scroll,code.custom-scroll *{white-space:pre-wrap!important;overflow-wrap:anywhere!important}' +
  'ul.endpoints,ul.endpoints *{overflow:visible!important;white-space:normal!important;overflow-wrap:anywhere!important}' +
  '.scalar-code-copy .sr-only>span{display:inline!important}';

/** Features that would need a service of Scalar's are off. */
const configuration = {
  agent: { disabled: true },
  authentication: { preferredSecurityScheme: 'apiKey' },
  customCss: contrast + reachable,
  hideClientButton: true,
  // Its name for screen readers is "Show all Email endpoints", which must contain the visible text (WCAG 2.5.3).
  localization: { translations: { actions: { showMore: 'Show all' } } },
  mcp: { disabled: true },
  showDeveloperTools: 'never',
  telemetry: false,
  withDefaultFonts: false,
};

const documentPath = '/api/public/openapi.json';

const pageWith = (script: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Postern API reference</title>
<link rel="icon" href="data:,">
</head>
<body>
<noscript><p>This page needs JavaScript. The same content is in the <a href="${documentPath}">OpenAPI document</a>.</p></noscript>
<script id="api-reference" data-url="${documentPath}" data-configuration='${JSON.stringify(configuration)}'></script>
<script src="${script}"></script>
</body>
</html>
`;

export function referenceRoutes(document: () => Document): Router {
  const router = new Router();
  /** 3.7 MB. Kept, so that clients that read slowly have it together, and that it is compressed once (compress.ts). */
  let loaded: ReturnType<typeof load> | undefined;
  const script = () => {
    loaded ??= load();
    return loaded;
  };
  let text: Buffer | undefined;
  router.get('/llms.txt', (context) => {
    text ??= Buffer.from(llmsText(document()));
    context.type = 'text/plain; charset=utf-8';
    context.body = text;
  });
  router.get('/docs', async (context) => {
    context.set('Content-Security-Policy', policy);
    context.set('Referrer-Policy', 'no-referrer');
    context.type = 'html';
    context.body = pageWith((await script()).url);
  });
  router.get('/docs/:hash/reference.js', async (context, next) => {
    if (context.path !== (await script()).url) return next();
    context.set('Cache-Control', 'public, max-age=31536000, immutable');
    context.type = 'text/javascript';
    context.body = (await script()).content;
  });
  return router;
}

/** The URL names the content, so that a browser keeps the script until another release brings a new one. */
async function load() {
  const content = await readReferenceScript();
  const hash = createHash('sha256').update(content).digest('base64url').slice(0, 16);
  return { url: `/docs/${hash}/reference.js`, content };
}
