/** The metrics of the certificates that the server gets itself. */
import type { ListedCertificate } from '#operate/certificates/rows/certificates-table.ts';
import { isUnused } from '#operate/condition/certificate-state.ts';
import type { Meters } from './registry.ts';

type CertificateMeters = Pick<Meters, 'certificateIssued' | 'certificateExpires' | 'certificateFailing'>;

export function setCertificates(meters: CertificateMeters, rows: ListedCertificate[]): void {
  const { certificateIssued, certificateExpires, certificateFailing } = meters;
  for (const gauge of [certificateIssued, certificateExpires, certificateFailing]) gauge.reset();
  for (const row of rows) {
    const { host, notBefore, notAfter, failingSince, problem } = row;
    if (notBefore !== null) certificateIssued.set({ host }, notBefore / 1000);
    if (notAfter !== null) certificateExpires.set({ host }, notAfter / 1000);
    if (problem !== null && failingSince !== null && !isUnused(row))
      certificateFailing.set({ host, type: problem.type }, failingSince / 1000);
  }
}
