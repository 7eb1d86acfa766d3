/**
 * The bots of one application: each `forRoot` or `forRootAsync` adds one, everything else (discovery, routes,
 * health, drain) looks them up here.
 */
import { Injectable } from '@nestjs/common'
import { Bot, ConfigError, MemoryStore, type Coordinator, type Logger, type Store } from '@botmesh/core'
import { nestLogger } from './nest-logger.js'
import { checkOptions, type BotmeshModuleOptions, type CheckedOptions } from './options.js'
import { DEFAULT_BOT } from './tokens.js'

export interface RegisteredBot {
  readonly name: string
  readonly bot: Bot
  readonly store: Store
  /** The bot's own, or an in-process one that begins its session at first use. */
  readonly coordinator: Coordinator
  /** False: the coordinator is not the bot's, so the bot will not stop it. */
  readonly coordinated: boolean
  readonly options: CheckedOptions
  readonly logger: Logger
}

@Injectable()
export class BotRegistry {
  private readonly bots = new Map<string, RegisteredBot>()

  /** @throws ConfigError for a second bot of one name, or a configuration that cannot work. */
  add(options: BotmeshModuleOptions, name: string): RegisteredBot {
    if (this.bots.has(name)) {
      throw new ConfigError(
        `Two bots are called "${name}": give every BotmeshModule.forRoot() of an application a name of its own.`,
        { option: 'name', value: name },
      )
    }
    const checked = checkOptions(options, name)
    const twin = this.all.find(({ bot }) => bot.provider === checked.config.provider)
    if (twin !== undefined) {
      throw new ConfigError(
        `The bots "${twin.name}" and "${name}" have one provider object; each bot needs a provider of its own.`,
        { option: 'provider' },
      )
    }
    this.refuseSecondOfAccount(checked, name)
    const logger = checked.config.logger ?? nestLogger(name === DEFAULT_BOT ? 'Botmesh' : `Botmesh:${name}`)
    const store = checked.config.store ?? new MemoryStore()
    const bot = new Bot({ ...checked.config, logger, store })
    const registered: RegisteredBot = {
      name,
      bot,
      store,
      coordinator: checked.config.coordination?.coordinator ?? new MemoryStore().coordinator(),
      coordinated: checked.config.coordination !== undefined,
      options: checked,
      logger,
    }
    this.bots.set(name, registered)
    return registered
  }

  /** Two bots of one account on one mesh would take each other's chats. @throws ConfigError */
  private refuseSecondOfAccount({ config }: CheckedOptions, name: string): void {
    const { coordination, provider } = config
    const twin = this.all.find(
      (one) =>
        one.coordinated &&
        one.coordinator === coordination?.coordinator &&
        one.bot.provider.id === provider.id,
    )
    if (twin === undefined) return
    throw new ConfigError(
      `The bots "${twin.name}" and "${name}" are both ${provider.id} on one coordinator and would take each other's chats: give their providers different accounts, or make one bot of them.`,
      { option: 'provider', value: provider.id },
    )
  }

  get all(): RegisteredBot[] {
    return [...this.bots.values()]
  }

  get names(): string[] {
    return [...this.bots.keys()]
  }

  /**
   * The bots meant by a decorator's `bot` option: a name, several, `'*'` for all; absent: the default bot, or the
   * only one there is.
   * @param owner for the error, such as `Class OrderFlow`.
   * @throws ConfigError for a name that no bot has.
   */
  select(wanted: string | readonly string[] | undefined, owner: string): RegisteredBot[] {
    if (wanted === '*') return this.all
    if (wanted === undefined) {
      const only = this.bots.get(DEFAULT_BOT) ?? (this.bots.size === 1 ? this.all[0] : undefined)
      if (only !== undefined) return [only]
      throw new ConfigError(
        `${owner} says no \`bot\`, and there is no default one; bots: ${this.listed()}. Say bot: '*' for all.`,
        { option: 'bot', accepted: this.listed() },
      )
    }
    return [wanted].flat().map((name) => {
      const found = this.bots.get(name)
      if (found !== undefined) return found
      throw new ConfigError(
        `${owner} is for a bot called "${name}", which does not exist; bots: ${this.listed()}.`,
        {
          option: 'bot',
          value: name,
          accepted: this.listed(),
        },
      )
    })
  }

  private listed(): string {
    return this.names.length === 0 ? 'none' : this.names.join(', ')
  }
}
