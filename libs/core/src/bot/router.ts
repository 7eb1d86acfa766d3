/**
 * Which handler a message goes to. Order: interrupting commands → the waiting conversation → commands → flow
 * triggers → hears → onMessage. Declared until start, then frozen.
 */
import { ConfigError } from '../contracts/errors.js'
import type { Message } from '../contracts/message.js'
import { describeValue } from '../kernel/duration.js'
import { refuseUnknownOptions, requireText } from '../kernel/options.js'
import type { CommandOptions, MessageHandler, MessageHook, Trigger } from './face.js'

interface Command {
  name: string
  handler: MessageHandler
  interrupt: boolean
}

interface Hearing {
  match: (body: string) => RegExpMatchArray | null
  handler: MessageHandler
}

/** A handler found for a message, and what is told to it. */
export interface Route {
  handler: MessageHandler
  match: RegExpMatchArray | null
  args: string
}

export class Router {
  private readonly commands = new Map<string, Command>()
  private readonly hearings: Hearing[] = []
  readonly handlers: MessageHandler[] = []
  readonly hooks: MessageHook[] = []
  private interrupting = false
  private frozen = false

  /** @throws ConfigError for a name that is taken or no name, or after start. */
  command(name: string, handler: MessageHandler, options: CommandOptions = {}): void {
    this.refuseFrozen(`command "${name}"`)
    const plain = normalise(requireText('command', name, 'the name of a command').replace(/^\//, ''))
    if (!/^[\p{L}\p{N}_-]+$/u.test(plain)) {
      throw new ConfigError(
        `Command ${describeValue(name)} is not a name; accepted: letters, digits, "_" and "-".`,
        { option: 'command', value: name },
      )
    }
    refuseUnknownOptions(`Command "${plain}"`, options, ['interrupt'])
    if (this.commands.has(plain)) {
      throw new ConfigError(`Command "${plain}" is declared twice.`, { option: 'command', value: name })
    }
    const interrupt = options.interrupt === true
    this.interrupting ||= interrupt
    this.commands.set(plain, {
      name: plain,
      handler: requireFunction(`command "${plain}"`, handler),
      interrupt,
    })
  }

  hears(trigger: Trigger, handler: MessageHandler): void {
    this.refuseFrozen('hears')
    this.hearings.push({ match: compile(trigger), handler: requireFunction('hears', handler) })
  }

  onMessage(handler: MessageHandler): void {
    this.refuseFrozen('onMessage')
    this.handlers.push(requireFunction('onMessage', handler))
  }

  before(event: 'message', hook: MessageHook): void {
    this.refuseFrozen('before')
    if (event !== 'message') {
      throw new ConfigError(`There is no hook before ${describeValue(event)}; accepted: 'message'.`, {
        option: 'before',
        value: event,
      })
    }
    this.hooks.push(requireFunction('before', hook))
  }

  freeze(): void {
    this.frozen = true
  }

  /** Everything that gets a context. */
  get code(): MessageHandler[] {
    return [
      ...this.hooks,
      ...this.handlers,
      ...this.hearings.map(({ handler }) => handler),
      ...[...this.commands.values()].map(({ handler }) => handler),
    ]
  }

  /** A command that does not wait for the conversation's turn to be asked. */
  interruptFor(message: Message): Route | null {
    return this.interrupting ? this.findCommand(message, true) : null
  }

  commandFor(message: Message): Route | null {
    return this.commands.size === 0 ? null : this.findCommand(message, false)
  }

  hearingFor(message: Message): Route | null {
    for (const { match, handler } of this.hearings) {
      const found = match(message.body)
      if (found !== null) return { handler, match: found, args: '' }
    }
    return null
  }

  /**
   * `/name`, `/name@bot` and `/name with words`; also the bare word, alone, since people on transports without
   * commands (WhatsApp) type "cancel" rather than "/cancel".
   */
  private findCommand(message: Message, interrupt: boolean): Route | null {
    const body = message.body.trim()
    const slashed = /^\/([\p{L}\p{N}_-]+)(?:@\S+)?(?:\s+([\s\S]*))?$/u.exec(body)
    if (slashed?.[1] !== undefined) {
      const command = this.commands.get(normalise(slashed[1]))
      if (command === undefined || command.interrupt !== interrupt) return null
      return { handler: command.handler, match: slashed, args: slashed[2] ?? '' }
    }
    const command = this.commands.get(normalise(body))
    if (command === undefined || command.interrupt !== interrupt) return null
    return { handler: command.handler, match: null, args: '' }
  }

  private refuseFrozen(what: string): void {
    if (!this.frozen) return
    throw new ConfigError(`${what} came too late: declare handlers before bot.start().`, { option: what })
  }
}

function requireFunction<F>(option: string, value: F): F {
  if (typeof value === 'function') return value
  throw new ConfigError(`The handler of ${option} is ${describeValue(value)}; accepted: a function.`, {
    option,
  })
}

function compile(trigger: Trigger): (body: string) => RegExpMatchArray | null {
  const all: readonly unknown[] = Array.isArray(trigger) ? trigger : [trigger]
  const texts: string[] = []
  const patterns: RegExp[] = []
  for (const one of all) {
    if (typeof one === 'string' && one.trim() !== '') texts.push(normalise(one))
    // Without `g` and `y`: those remember where the last match ended.
    else if (one instanceof RegExp) patterns.push(new RegExp(one.source, one.flags.replace(/[gy]/g, '')))
    else {
      const accepted = 'a non-empty text, a RegExp, or an array of them'
      throw new ConfigError(`The trigger of hears is ${describeValue(one)}; accepted: ${accepted}.`, {
        option: 'hears',
        accepted,
      })
    }
  }
  return (body) => {
    if (texts.length > 0 && texts.includes(normalise(body))) return [body]
    for (const pattern of patterns) {
      const match = pattern.exec(body)
      if (match !== null) return match
    }
    return null
  }
}

/** How texts are compared: surrounding space and case do not matter. */
function normalise(text: string): string {
  return text.normalize('NFC').trim().toLowerCase()
}
