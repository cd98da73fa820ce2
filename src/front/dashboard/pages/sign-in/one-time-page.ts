/** What the pages behind one-time links begin with: the link's hash, a new password, and the page of a link that is over. */
import { tokenHash } from '#accounts/people/one-time-links.ts';
import { passwordProblem } from '#accounts/people/passwords.ts';
import type { PageParts, PageVisit } from '#front/dashboard/page.ts';
import { PageError } from '#front/dashboard/page-error.ts';

export function linkHash({ context }: PageVisit): string {
  return tokenHash((context.params as { token: string }).token);
}

/** The hash of the password in the form, or what is wrong with it. */
export async function newPassword(
  { form }: PageVisit,
  { passwords }: PageParts,
  email: string,
): Promise<{ hash: string } | { problem: string }> {
  const password = form.get('password') ?? '';
  const problem = passwordProblem(password, email);
  return problem ? { problem } : { hash: await passwords.hash(password, email) };
}

export function linkIsOver(advice: string, what = 'link'): PageError {
  return new PageError(404, `This ${what} is not valid`, advice);
}
