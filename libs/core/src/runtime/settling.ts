/** Waiting for a conversation to settle (T4). */
import type { Clock } from '../contracts/clock.js'
import type { Span } from './span.js'

/** `running` itself, the loss or the stop of the span, or the limit. */
export function firstOf(
  running: Promise<void>,
  span: Span,
  limitMs: number | null,
  clock: Clock,
): Promise<'settled' | 'stopped' | 'late'> {
  return new Promise((resolve) => {
    const timer = limitMs === null ? null : clock.setTimeout(() => resolve('late'), limitMs)
    const end = (outcome: 'settled' | 'stopped') => {
      timer?.cancel()
      resolve(outcome)
    }
    span.whenStopped(() => end('stopped'))
    void running.then(() => end('settled'))
  })
}
