/** Sender keys of groups, as one person's phone keeps them: its own, to write, and the bot's, to read. */
import { proto } from '@whiskeysockets/baileys'
import {
  GroupCipher,
  GroupSessionBuilder,
  SenderKeyDistributionMessage,
  SenderKeyName,
  SenderKeyRecord,
} from '@whiskeysockets/baileys/lib/Signal/Group/index.js'

export class GroupKeys {
  private readonly records = new Map<string, SenderKeyRecord>()
  private readonly store = {
    loadSenderKey: async (name: SenderKeyName) => {
      const record = this.records.get(name.toString()) ?? new SenderKeyRecord()
      this.records.set(name.toString(), record)
      return record
    },
    storeSenderKey: async (name: SenderKeyName, record: SenderKeyRecord) => {
      this.records.set(name.toString(), record)
    },
  }

  /** What tells a member the keys of this person's next messages. */
  async distribution(group: string): Promise<proto.IMessage> {
    const key = await new GroupSessionBuilder(this.store).create(nameOf(group, 'me'))
    const axolotlSenderKeyDistributionMessage = key.serialize()
    return { senderKeyDistributionMessage: { groupId: group, axolotlSenderKeyDistributionMessage } }
  }

  encrypt(group: string, padded: Uint8Array): Promise<Uint8Array> {
    return new GroupCipher(this.store, nameOf(group, 'me')).encrypt(padded)
  }

  async learn(key: proto.Message.ISenderKeyDistributionMessage): Promise<void> {
    const bytes = key.axolotlSenderKeyDistributionMessage ?? new Uint8Array()
    const message = new SenderKeyDistributionMessage(null, null, null, null, bytes)
    await new GroupSessionBuilder(this.store).process(nameOf(key.groupId ?? '', 'bot'), message)
  }

  decrypt(group: string, sealed: Uint8Array): Promise<Uint8Array> {
    return new GroupCipher(this.store, nameOf(group, 'bot')).decrypt(sealed)
  }
}

function nameOf(group: string, who: string): SenderKeyName {
  return new SenderKeyName(group, { id: who, deviceId: 0, toString: () => `${who}.0` })
}
