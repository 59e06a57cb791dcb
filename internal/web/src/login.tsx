import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type * as api from './api'
import { Trouble } from './dialog'
import { change } from './http'
import { base } from './route'
import { atProvider, open, why } from './session'
import { useValue } from './value'

// Login asks for a token, or leads to the site's identity provider. It lies over what
// was shown (over), so that nothing typed is lost: over a question, too, which is why it
// is a dialog itself, and one that Escape does not leave.
export function Login(props: { over: boolean }) {
  const [token, setToken] = useState('')
  const [failed, fail] = useState<unknown>()
  const [busy, work] = useState(false)
  const reason = useValue(why)
  const send = async (e: Event) => {
    e.preventDefault()
    work(true)
    await open(token).then(() => setToken(''), fail)
    work(false)
  }
  const box = useRef<HTMLDialogElement>(null)
  const stay = () => box.current?.isConnected && !box.current.open && box.current.showModal()
  useLayoutEffect(() => {
    stay()
    const d = box.current
    return () => d?.close() // who logged in is where they were
  }, [])
  return (
    <dialog class="login" ref={box} aria-labelledby="login-title" onCancel={(e: Event) => e.preventDefault()} onClose={stay}>
      <form onSubmit={send}>
        <h1 id="login-title">gbatch</h1>
        {reason && <p role="status">{reason}</p>}
        <p>
          Run <code>gadm web</code> where you submit jobs, and open the link that it prints. Or paste a token of <code>gadm token create</code>:
        </p>
        <label>
          <span>Token</span>
          <input type="password" autocomplete="off" required value={token} onInput={(e) => setToken(e.currentTarget.value)} />
        </label>
        <Trouble of={failed} />
        <button class="main" disabled={busy}>
          Log in
        </button>
        <Provider over={props.over} />
      </form>
    </dialog>
  )
}

// Provider leads to the identity provider, where the page has a login there.
function Provider(props: { over: boolean }) {
  const [site, know] = useState<api.LoginPages>()
  const [failed, fail] = useState<unknown>()
  const [gone, go] = useState(false)
  useEffect(() => void change<api.LoginPages>('GET', '/v1/login/page').then(know, () => undefined), []) // most sites have none
  if (!site) return null
  const pages = site.pages ?? []
  if (!pages.includes(location.origin + base + '/')) {
    return (
      <p>
        To log in at {site.issuer}, open this page as{' '}
        {pages.map((p) => (
          <a key={p} href={p} rel="noreferrer">
            {p}
          </a>
        ))}
      </p>
    )
  }
  const lead = () => atProvider(props.over).then(() => (fail(undefined), go(props.over)), fail)
  return (
    <>
      <p>Or, without a token:</p>
      <button type="button" onClick={lead}>
        Log in at {new URL(site.issuer).host}
      </button>
      {gone && <p role="status">Log in in the other tab; this one then goes on by itself.</p>}
      <Trouble of={failed} />
    </>
  )
}
