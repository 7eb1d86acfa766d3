/** The rules that every transport keeps, checked on WhatsApp against the double. */
import { describe, expect, it } from '@jest/globals'
import { providerSuite } from '@botmesh/core/testing'
import { MetaProvider } from '@botmesh/meta'
import { GraphApiDouble, metaText, metaWebhookBody } from '../../../test/doubles/graph-api.js'
import { graphConformance } from '../../../test/support/page-transport/bed.js'
import { optionsFor, post } from '../../../test/support/page-transport/fixture.js'
import { PHONE_NUMBER_ID } from './samples.js'

providerSuite(
  { describe, it, expect },
  graphConformance('WhatsApp Cloud API', async () => {
    const graph = await new GraphApiDouble().listen()
    return {
      graph,
      provider: new MetaProvider({
        ...optionsFor(graph.url, { maxBodyBytes: 4096 }),
        phoneNumberId: PHONE_NUMBER_ID,
      }),
      write: (body, serial) =>
        post(metaWebhookBody(PHONE_NUMBER_ID, [metaText('34600111222', `wamid.${serial}`, body)])),
      unknownEvent: () => post(JSON.stringify({ object: 'page', entry: [] })),
      post,
      textOf: (body) => (body['text'] as { body: string }).body,
      refusal: { code: 131_026 },
      limit: 130_429,
    }
  }),
)
