/**
 * Holds real answers against the service's own OpenAPI document, for their path and status: the body against the
 * schema, nothing more than it says; every header that it says is always there, and each that is there against its
 * schema; no header of the document's on an answer that it does not list it for.
 */

import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { ExecutionContext } from 'ava';
import type { Document, Method, Operation } from '#front/api/openapi/openapi-types.ts';
import type { Answer, World } from './scenes/world.ts';

/** CommonJS: what Node calls their default is the module. */
const Ajv = Ajv2020 as unknown as typeof Ajv2020.default;
const formats = addFormats as unknown as typeof addFormats.default;

export type Contract = ReturnType<typeof contractOf>;

/** By document, without its address: all files of a process have one, whose schemas take a second to compile. */
const contracts = new Map<string, Contract>();

export async function readContract(world: Pick<World, 'url'>): Promise<Contract> {
  const response = await fetch(`${world.url()}/api/public/openapi.json`);
  const document = (await response.json()) as Document;
  const text = JSON.stringify({ ...document, servers: [] });
  const contract = contracts.get(text) ?? contractOf(document);
  contracts.set(text, contract);
  return contract;
}

function contractOf(document: Document) {
  const ajv = new Ajv({ strict: true, strictRequired: false, allErrors: true, allowUnionTypes: true });
  formats(ajv);
  ajv.addFormat('idn-email', (text: string) => /^[^@]+@[^@]+$/.test(text));
  ajv.addVocabulary([...Object.keys(document), 'discriminator']);
  ajv.addSchema(document, 'openapi', false, false);

  const validators = new Map<string, ReturnType<typeof ajv.compile>>();

  /** What is wrong with a value at a place of the document, given by the steps that lead to its schema. */
  function faults(value: unknown, ...steps: string[]): string[] {
    const pointer = steps.map((step) => step.replaceAll('~', '~0').replaceAll('/', '~1'));
    const $ref = `openapi#/${pointer.map(encodeURIComponent).join('/')}`;
    const validate = validators.get($ref) ?? ajv.compile({ $ref });
    validators.set($ref, validate);
    if (validate(value)) return [];
    return validate.errors!.map(({ instancePath, message }) => `${instancePath || '(all)'} ${message}`);
  }

  function headerFaults(answer: Answer, listed: Record<string, object>): string[] {
    return Object.entries(document.components.headers).flatMap(([name, { required, schema }]) => {
      const text = answer.headers.get(name);
      if (text === null) return name in listed && required ? [`${name} is missing`] : [];
      if (!(name in listed)) return [`${name} is not documented here`];
      const value = schema.type === 'integer' && /^\d+$/.test(text) ? Number(text) : text;
      const found = faults(value, 'components', 'headers', name, 'schema');
      return found.map((fault) => `${name}: ${text} ${fault}`);
    });
  }

  /** `path` as the document has it. */
  function check(t: ExecutionContext, method: Method, path: string, answer: Answer) {
    const operation = document.paths[path]![method]!;
    const told = operation.responses[answer.status];
    const name = `${method} ${path} ${answer.status}: ${JSON.stringify(answer.body).slice(0, 1000)}`;
    if (!told) return t.fail(`not documented: ${name}`);
    const steps = ['paths', path, method, 'responses', String(answer.status)];
    const body = faults(answer.body, ...steps, 'content', 'application/json', 'schema');
    const found = [...body, ...headerFaults(answer, told.headers)];
    t.deepEqual(found, [], name);
  }

  return { document, faults, check };
}

export function operationsOf(document: Document) {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    (Object.entries(methods) as [Method, Operation][]).map(([method, operation]) => ({
      path,
      method,
      operation,
    })),
  );
}
