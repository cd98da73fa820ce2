/** The private part of @scalar/fastify-api-reference is still what src/platform/vendor/scalar.ts expects. */
import test from 'ava';
import { checkPart, checkVersion } from '#lab/vendor.ts';
import { readReferenceScript } from '#platform/vendor/scalar.ts';

const file = 'src/platform/vendor/scalar.ts';

test('@scalar/fastify-api-reference is pinned to the version that was read', (t) =>
  checkVersion(t, '@scalar/fastify-api-reference', file));

test('the package has the reference as one script, which reads its configuration from the page', (t) =>
  checkPart(t, 'the string standalone_default of @scalar/fastify-api-reference', file, async () =>
    (await readReferenceScript()).includes('data-configuration'),
  ));
