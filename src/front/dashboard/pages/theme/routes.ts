/** The theme: light, dark, or as the system has it, kept in a cookie. */
import {
  type DashboardPage,
  type PageAnswer,
  type PageParts,
  type PageVisit,
  redirect,
} from '#front/dashboard/page.ts';

export const themePage: DashboardPage = { open: { 'POST /dashboard/theme': change } };

const yearMs = 365 * 24 * 3_600_000;

function change({ form, context }: PageVisit, { cookies }: PageParts): PageAnswer {
  const theme = form.get('theme');
  cookies.set(context, 'theme', theme === 'light' || theme === 'dark' ? theme : null, yearMs);
  return redirect(backTo(context.get('referer')));
}

/** The page with the switch. Only the path of the referrer is used, so that it cannot lead to another site. */
function backTo(referer: string): string {
  const path = URL.canParse(referer) ? new URL(referer).pathname + new URL(referer).search : '';
  return path.startsWith('/dashboard/') ? path : '/dashboard';
}
