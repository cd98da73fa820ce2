/**
 * mx-connect's steps one by one, with types for what we use of them. Its front door resolves and connects in one
 * go to the first host that answers; we need to know the hosts, because a host that answers may still refuse, and
 * the next one is then to be tried.
 */
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import type { Resolve } from './resolver.ts';

export interface MxDelivery {
  domain: string;
  mx: { exchange: string; priority: number; A: string[]; AAAA: string[] }[];
  blockedAddresses: unknown[];
  dnsOptions: { resolveRecords: Resolve; blockLocalAddresses: boolean; blockReservedNetworks: boolean };
  mtaSts: { logger: (entry: object) => void };
}

interface ConnectOptions {
  target: string;
  mx: { exchange: string; A: string[]; AAAA: string[] }[];
  port: number;
  maxConnectTime: number;
  dnsOptions: { blockLocalAddresses: boolean; blockReservedNetworks: boolean };
}

type Step = (delivery: MxDelivery) => Promise<MxDelivery>;

const require = createRequire(import.meta.url);

export const formatAddress: Step = require('mx-connect/lib/format-address');
export const resolveMX: Step = require('mx-connect/lib/resolve-mx');
export const resolveIP: Step = require('mx-connect/lib/resolve-ip');
export const mxConnect: (options: ConnectOptions) => Promise<{ socket: Socket }> = require('mx-connect');
