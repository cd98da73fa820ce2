/** Whether an endpoint wants a type; no types means all. webhook.test goes only to the endpoint under test, so nobody subscribes to it. */
export function wants(types: readonly string[], type: string): boolean {
  return type !== 'webhook.test' && (types.length === 0 || types.includes(type));
}
