/** Names the timer of a wait, with the revision of its checkpoint for ever (D2). */
export function waitTimerId(visit: number, question: number): string {
  return `wait-${visit}-${question}`
}
