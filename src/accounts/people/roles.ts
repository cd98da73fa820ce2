/**
 * Roles in an organization: viewers can see everything except the team, developers also manage mail, owners also manage the
 * team.
 */

/** Each role includes the ones before it. */
export const roles = ['viewer', 'developer', 'owner'] as const;
export type Role = (typeof roles)[number];

export function isAtLeast(role: Role, min: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(min);
}
