/** What the demo is told on its command line. */
import { readArguments } from '../arguments.mjs'

/**
 * @typedef {object} DemoSettings
 * @property {boolean} replay
 * @property {boolean} inProcess no Redis: three replicas in this process
 * @property {number} port the balancer's; 0: any free one
 * @property {number} leaseMs
 * @property {boolean} verbose print every line of every replica
 */

/**
 * @param {readonly string[]} args
 * @returns {DemoSettings}
 * @throws {Error} that names the argument
 */
export function readSettings(args) {
  const given = readArguments(args, {
    replay: { kind: 'switch' },
    'in-process': { kind: 'switch' },
    port: { kind: 'number', least: 0, most: 65_535 },
    'lease-ms': { kind: 'number', least: 1000, most: 60_000 },
    verbose: { kind: 'switch' },
  })
  return {
    replay: given.replay === true,
    inProcess: given['in-process'] === true,
    port: Number(given.port ?? 3000),
    leaseMs: Number(given['lease-ms'] ?? 5000),
    verbose: given.verbose === true,
  }
}
