/** What members of an organization may do: a viewer looks, a developer works with mail, an owner also has people and credits. */

/** Each may do what those before it may. */
export const roles = ['viewer', 'developer', 'owner'] as const;
export type Role = (typeof roles)[number];

export function isAtLeast(role: Role, min: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(min);
}
