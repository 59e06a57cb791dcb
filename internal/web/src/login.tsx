import { useState } from 'preact/hooks'
import { Trouble } from './dialog'
import { open, why } from './session'
import { useValue } from './value'

// Login asks for a token. It lies over what was shown, so that nothing typed is lost.
export function Login() {
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
  return (
    <div class="login">
      <form onSubmit={send}>
        <h1>gbatch</h1>
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
      </form>
    </div>
  )
}
