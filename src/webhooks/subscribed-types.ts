/** A test is for the endpoint that is tested, whatever it has asked for, and for no other. No types: all of them. */
export function wants(types: readonly string[], type: string): boolean {
  return type !== 'webhook.test' && (types.length === 0 || types.includes(type));
}
