import type * as api from './api'
import { change, loggedOut, read } from './http'
import { Value } from './value'

// who is who uses the page; null: nobody yet; undefined: it is being asked.
export const who = new Value<api.Status | null | undefined>(undefined)

// why is what the login form says.
export const why = new Value('')

loggedOut.watch(() => {
  if (who.get()) why.set('Your session has ended. Log in to go on; nothing that you typed is lost.')
  who.set(null)
})

// begin opens the session of a link of `gadm web`, which is used up by that, or goes
// on with the session that the browser has.
export async function begin(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get('login')
  if (code) {
    history.replaceState(null, '', location.pathname + location.search) // it is a secret until it is used
    await open(code).catch((e) => why.set(e.message))
    if (who.get()) return
  }
  await learn().catch(() => who.set(null))
}

// open exchanges a token for a session, which the browser keeps where no script
// can read it.
export async function open(token: string): Promise<void> {
  await change('POST', '/v1/session', undefined, { Authorization: 'Bearer ' + token.trim() })
  await learn()
}

export async function close(): Promise<void> {
  await change('DELETE', '/v1/session')
  why.set('You are logged out.')
  who.set(null)
}

async function learn(): Promise<void> {
  who.set(await read<api.Status>('/v1/status'))
  why.set('')
}

// operator says whether who uses the page may act on everyone's jobs and on nodes.
export const operator = (): boolean => ['operator', 'admin'].includes(who.get()?.role ?? '')
