/** Whether an endpoint subscribes to a type; no types means all. webhook.test is posted only to the endpoint under test. */
export function wants(types: readonly string[], type: string): boolean {
  return type !== 'webhook.test' && (types.length === 0 || types.includes(type));
}
