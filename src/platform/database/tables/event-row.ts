/** The row of a new event. Its position is assigned by the database. */
import { newId } from '#platform/base/id.ts';

export interface NewEvent {
  orgId: string;
  /** Left out for an event of the organization. */
  emailId?: string | null;
  type: string;
  recipient?: string;
  at: number;
  data: object;
}

export function eventRow({ orgId, emailId, type, recipient, at, data }: NewEvent) {
  return {
    id: newId(),
    org_id: orgId,
    email_id: emailId ?? null,
    type,
    recipient: recipient ?? null,
    at,
    data: JSON.stringify(data),
  };
}
