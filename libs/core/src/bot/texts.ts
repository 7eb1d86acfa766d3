/** Texts that the library itself writes to users, by language and id (B5). Replaceable with `BotConfig.texts`. */
export type Texts = Readonly<Record<string, Readonly<Record<string, string>>>>

export const BUILT_IN_TEXTS: Texts = {
  en: {
    'core.conversation.interrupted': 'Sorry, our conversation was interrupted. Please start again.',
  },
  es: {
    'core.conversation.interrupted': 'Perdona, la conversación se interrumpió. Empieza de nuevo, por favor.',
  },
  pt: {
    'core.conversation.interrupted':
      'Desculpe, a nossa conversa foi interrompida. Comece de novo, por favor.',
  },
}

/** Finds a text: the language asked for, its base language, the bot's locale, English; the bot's own texts first. */
export class TextCatalogue {
  constructor(
    private readonly own: Texts,
    private readonly locale: string,
  ) {}

  /** @returns the id itself if no language has it, so that a slip shows. `{name}` is filled from `values`. */
  find(id: string, lang: string | undefined, values: Record<string, string | number> = {}): string {
    for (const language of [...variants(lang), ...variants(this.locale), 'en']) {
      const text = this.own[language]?.[id] ?? BUILT_IN_TEXTS[language]?.[id]
      if (text !== undefined) return fill(text, values)
    }
    return id
  }
}

/** `pt-BR` → `pt-BR`, `pt-br`, `pt`. */
function variants(lang: string | undefined): string[] {
  if (lang === undefined || lang === '') return []
  const base = lang.split(/[-_]/)[0] ?? lang
  return [lang, lang.toLowerCase(), base.toLowerCase()]
}

function fill(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => (name in values ? String(values[name]) : whole))
}
