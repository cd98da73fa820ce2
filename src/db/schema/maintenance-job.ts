/** One kind of rows to forget, for server/maintenance.ts: `run` looks at a bounded number and resolves with how many it found. */
export interface MaintenanceJob {
  name: string;
  run(): Promise<number>;
  /** Every mail leaves it a row: with few it has caught up, or it would never end while mail goes through. */
  isFedByMail?: boolean;
}
