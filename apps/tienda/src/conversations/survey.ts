/** A survey as a plain asynchronous function: short, and no harm done if it is lost with its replica. */
import { Injectable } from '@nestjs/common'
import { ConversationContext, MessageContext, type Message } from '@botmesh/core'
import { Conversation, Hears } from '@botmesh/nestjs'
import { languageOf, textsFor } from '../texts.js'

@Injectable()
export class Survey {
  @Hears([/^encuesta$/i, /^survey$/i], { bot: '*' })
  async begin(ctx: MessageContext) {
    await ctx.enter('survey')
  }

  @Conversation('survey', { bot: '*' })
  async survey(c: ConversationContext, ctx: MessageContext) {
    const texts = textsFor(languageOf(c.message.body, c.lang))
    const answer = await c.ask(texts.surveyScore, {
      validate: (message: Message) => /^[1-5]$/.test(message.body.trim()) || texts.surveyScoreBad,
      timeout: '10m',
    })
    const score = Number(answer)
    const why = await c.ask(texts.surveyWhy, { timeout: '10m' })
    ctx.user.survey = { score, why }
    await c.say(texts.surveyThanks(score))
  }
}
