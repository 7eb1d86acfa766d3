/** What the replay found out: compares what people were told with what they had to be told. Pure. */
import { chatOf } from '../readable-key.js'

export interface HandledEvent {
  replica: string
  chat: string
  messageId: string
  fence: number
  /** Place in the order of arrival; null if the message was not journalled. */
  seq: number | null
}

export interface Findings {
  messages: number
  expectedReplies: number
  replies: number
  perChat: { chat: string; replies: number; expected: number; by: string[] }[]
  perReplica: Record<string, number>
  handovers: Record<string, number>
  redelivered: number
  /** Messages handled although one that arrived before was not yet: must be none. */
  orderViolations: string[]
  /** Answers that never came. */
  lost: string[]
  /** Answers that came twice, or that nobody expected. */
  doubled: string[]
  /** Messages handled more than once. */
  handledTwice: string[]
}

export interface Evidence {
  messages: number
  redelivered: number
  expectations: ReadonlyMap<string, readonly string[]>
  repliesOf(chat: string): readonly string[]
  handled: readonly HandledEvent[]
  handovers: readonly { outcome: string }[]
}

export function findingsOf(evidence: Evidence): Findings {
  const lost: string[] = []
  const doubled: string[] = []
  const perChat: Findings['perChat'] = []
  let replies = 0
  let expectedReplies = 0
  for (const [chat, expected] of evidence.expectations) {
    const got = evidence.repliesOf(chat)
    replies += got.length
    expectedReplies += expected.length
    compare(chat, expected, got, lost, doubled)
    const by = [
      ...new Set(evidence.handled.filter((one) => chatOf(one.chat) === chat).map((one) => one.replica)),
    ]
    perChat.push({ chat, replies: got.length, expected: expected.length, by })
  }
  return {
    messages: evidence.messages,
    expectedReplies,
    replies,
    perChat,
    perReplica: countBy(evidence.handled.map((one) => one.replica)),
    handovers: countBy(evidence.handovers.map((one) => one.outcome)),
    redelivered: evidence.redelivered,
    orderViolations: orderViolations(evidence.handled),
    lost,
    doubled,
    handledTwice: repeated(evidence.handled.map((one) => `${one.chat} ${one.messageId}`)),
  }
}

export function isClean(findings: Findings, complaints: readonly string[]): boolean {
  const { lost, doubled, orderViolations: order, handledTwice } = findings
  return [lost, doubled, order, handledTwice, complaints].every((list) => list.length === 0)
}

/** Answers must come in the order in which they are expected: what is skipped is lost, what is left over is doubled. */
function compare(
  chat: string,
  expected: readonly string[],
  got: readonly string[],
  lost: string[],
  doubled: string[],
): void {
  let next = 0
  for (const text of got) {
    if (next < expected.length && text.includes(expected[next] as string)) {
      next++
      continue
    }
    const later = expected.findIndex((part, index) => index > next && text.includes(part))
    const repeats = next > 0 && text.includes(expected[next - 1] as string)
    if (later < 0 || repeats) {
      doubled.push(`${chat}: ${shorten(text)}`)
      continue
    }
    for (; next < later; next++) lost.push(`${chat}: "${expected[next]}"`)
    next++
  }
  for (; next < expected.length; next++) lost.push(`${chat}: "${expected[next]}"`)
}

/** Within a chat fences order the handling; arrival order must agree. */
function orderViolations(handled: readonly HandledEvent[]): string[] {
  const violations: string[] = []
  const chats = new Map<string, HandledEvent[]>()
  for (const one of handled) {
    const list = chats.get(one.chat) ?? []
    chats.set(one.chat, list)
    list.push(one)
  }
  for (const [chat, list] of chats) {
    list.sort((x, y) => x.fence - y.fence)
    for (const [index, { seq }] of list.entries()) {
      const before = list[index - 1]
      if (before === undefined || seq === null || before.seq === null) continue
      if (seq < before.seq) violations.push(`${chat}: record ${seq} was handled after record ${before.seq}`)
    }
  }
  return violations
}

function countBy(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names.toSorted()) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

function repeated(names: readonly string[]): string[] {
  return Object.entries(countBy(names))
    .filter(([, count]) => count > 1)
    .map(([name, count]) => `${name}: ${count} times`)
}

function shorten(text: string): string {
  return text.length > 100 ? `${text.slice(0, 97)}...` : text
}

/** The summary as lines of text. */
export function renderFindings(findings: Findings, complaints: readonly string[], clean: boolean): string[] {
  const pairs = (record: Record<string, number>) =>
    Object.entries(record)
      .map(([name, count]) => `${name} ${count}`)
      .join(', ') || 'none'
  const list = (name: string, items: readonly string[]) => [
    `  ${name.padEnd(18)} ${items.length}`,
    ...items.map((item) => `      ${item}`),
  ]
  return [
    '',
    '  chat               replies  expected  answered by',
    ...findings.perChat.map(
      ({ chat, replies, expected, by }) =>
        `  ${chat.padEnd(18)} ${String(replies).padStart(7)}  ${String(expected).padStart(8)}  ${by.join(' ')}`,
    ),
    '',
    `  messages in        ${findings.messages}`,
    `  replies            ${findings.replies} of ${findings.expectedReplies}`,
    `  handled by         ${pairs(findings.perReplica)}`,
    `  hand-overs         ${pairs(findings.handovers)}`,
    `  delivered again    ${findings.redelivered}`,
    ...list('order violations', findings.orderViolations),
    ...list('lost', [...findings.lost, ...complaints]),
    ...list('doubled', [...findings.doubled, ...findings.handledTwice]),
    '',
    clean ? '  Nothing was lost, doubled or out of order.' : '  Something went wrong: see above.',
    '',
  ]
}
