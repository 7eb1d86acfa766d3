/**
 * Keeps the calls of Baileys' Signal library apart, in this process, by the address that they are about.
 *
 * That library has one queue an address for the whole process, and works it off in the asynchronous context of whoever
 * came first. By that context Baileys knows which key transaction a read or write belongs to: whoever had to wait there
 * would write into the first one's transaction, or, on another connection or account, past its own: a key would be
 * used up although its message was refused, and the message would be lost. So nobody waits there, but here.
 */
import { keyedQueue } from './keyed-queue.js'

export const inSignalQueue = keyedQueue()
