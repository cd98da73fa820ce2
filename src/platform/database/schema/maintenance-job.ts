/** A job of server/maintenance.ts: `run` handles a bounded number of rows and resolves with how many it found. */
export interface MaintenanceJob {
  name: string;
  run(): Promise<number>;
  /** Every mail adds a row: a small batch means that the job has caught up; otherwise it would never end under load. */
  isFedByMail?: boolean;
  /** It does not wait for the minute. */
  isUrgent?: boolean;
  /** Time alone may bring it work that must not wait. */
  isTimely?: boolean;
  /** It deletes what has become old. */
  isByAge?: boolean;
  /** It waits for servers of strangers, such as their DNS. */
  isRemote?: boolean;
}
