/** Everything that is no conversation: the way out, and the menu for all else. */
import { Injectable } from '@nestjs/common'
import { MessageContext } from '@botmesh/core'
import { Command, OnMessage } from '@botmesh/nestjs'
import { languageOf, textsFor } from '../texts.js'

@Injectable()
export class FrontDesk {
  /** Interrupts whatever waits for an answer. */
  @Command('cancelar', { interrupt: true, bot: '*' })
  @Command('cancel', { interrupt: true, bot: '*' })
  async cancel(ctx: MessageContext) {
    const texts = textsFor(languageOf(ctx.body, ctx.lang))
    await ctx.reply((await ctx.leave()) ? texts.cancelled : texts.nothingToCancel)
  }

  @OnMessage({ bot: '*' })
  async menu(ctx: MessageContext) {
    await ctx.reply(textsFor(languageOf(ctx.body, ctx.lang)).menu)
  }
}
