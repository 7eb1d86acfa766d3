/** Preloaded by a replica in its own process: its client library believes the double whose root key it is given. */
import { WA_CERT_DETAILS } from '@whiskeysockets/baileys'

const key = process.env.BOTMESH_TEST_WHATSAPP_ROOT
if (key === undefined)
  throw new Error('BOTMESH_TEST_WHATSAPP_ROOT is not set: doubleRootKey() of the double says it')
WA_CERT_DETAILS.PUBLIC_KEY = Buffer.from(key, 'hex')
