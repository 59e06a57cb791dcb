import type * as api from './api'
import { forget } from './draft'
import { type Failure, change, loggedOut, read } from './http'
import { base, go } from './route'
import { Value } from './value'

// who is who uses the page; null: nobody yet; undefined: it is being asked.
export const who = new Value<api.Status | null | undefined>(undefined)

// whose is the user whose page is shown. It stays below the form when a session ends,
// with what was typed; who logs out, or in as somebody else, takes it away.
export const whose = new Value<string | undefined>(undefined)

// why is what the login form says.
export const why = new Value('')

loggedOut.watch(() => {
  if (who.get()) why.set('Your session has ended. Log in to go on; nothing that you typed is lost.')
  who.set(null)
})

// begin opens the session of a link of `gadm web`, which is used up by that, or goes
// on with the session that the browser has.
export async function begin(): Promise<void> {
  if (await returned()) return
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
  await entered()
}

// tabs tells the other tabs of this browser that they have another session, or none any more.
const tabs = new BroadcastChannel('login')
tabs.onmessage = (m) => (m.data === 'out' ? left() : void learn().catch(() => undefined))

async function entered(): Promise<void> {
  await learn()
  tabs.postMessage('in')
}

// atProvider leads to the site's identity provider. In a tab of its own it does where
// there is something to lose in this one.
export async function atProvider(own: boolean): Promise<void> {
  const { address } = await change<api.LoginAddress>('POST', '/v1/login/page')
  if (own) return void window.open(address, '_blank', 'noopener')
  sessionStorage.setItem('place', location.pathname + location.search)
  location.assign(address)
}

// returned goes on with the login from which the browser comes back, if it does. What
// the address has of it is good for once, and for this browser alone.
async function returned(): Promise<boolean> {
  const q = new URLSearchParams(location.search)
  const state = q.get('state')
  const code = q.get('code')
  const error = q.get('error')
  if (!state || location.pathname !== base + '/' || (!code && !error)) return false
  const place = sessionStorage.getItem('place') ?? ''
  sessionStorage.removeItem('place')
  go(place.startsWith(base + '/') ? place.slice(base.length) : '/', true)
  try {
    if (!code) throw new Error('The identity provider did not log you in' + (/^[a-z_]{1,40}$/.test(error!) ? `: ${error}.` : '.'))
    await change('POST', '/v1/login/page/return', { code, state })
    await entered()
  } catch (e) {
    const { message, hint } = e as Partial<Failure>
    why.set([message, hint].filter(Boolean).join('; '))
    who.set(null)
  }
  return true
}

export async function close(): Promise<void> {
  await change('DELETE', '/v1/session')
  tabs.postMessage('out')
  left()
}

// left leaves nothing of a user who has logged out: the next one is another, perhaps.
function left(): void {
  forget()
  go('/', true)
  why.set('You are logged out.')
  whose.set(undefined)
  who.set(null)
}

async function learn(): Promise<void> {
  const me = await read<api.Status>('/v1/status')
  whose.set(me.you)
  who.set(me)
  why.set('')
}

// operator says whether who uses the page may act on everyone's jobs and on nodes.
export const operator = (): boolean => ['operator', 'admin'].includes(who.get()?.role ?? '')
