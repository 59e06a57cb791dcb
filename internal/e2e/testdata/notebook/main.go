// Notebook serves at port 8888 as a server of notebooks does, and attacks who looks at it:
// its page tries what a stranger's program would.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"github.com/coder/websocket"
)

const page = `<!doctype html><title>a notebook</title><p id="out">loading</p><script>
// A browser breaks off what is under way as a network interface comes or goes.
const again = (why) => {
	sessionStorage.tries = (sessionStorage.tries ?? '') + why + '\n'
	document.getElementById('out').textContent = sessionStorage.tries
	setTimeout(() => location.reload(), 500)
}
;(async () => {
	const out = {cookie: (sessionStorage.cookie ??= document.cookie)} // of the first try
	document.cookie = 'own=1; path=/'
	document.cookie = '__Host-gbatch=stolen; path=/; secure'
	document.cookie = '__Host-gbatch-port=stolen; path=/; secure'
	out.own = document.cookie
	out.heard = await (await fetch('/heard', {method: 'POST', headers: {Authorization: 'token abc'}, body: '1'})).json()
	const of = new URLSearchParams(location.search).get('page')
	for (const credentials of ['include', 'omit'])
		await fetch(of + '/v1/status', {credentials}).then((a) => (out[credentials] = a.status), (e) => (out[credentials] = 'refused'))
	await fetch(of + '/v1/jobs/actions/cancel', {method: 'POST', mode: 'no-cors', credentials: 'include', body: JSON.stringify({ids: ['1']})}).then(() => 0, () => 0)
	const socket = new WebSocket(location.origin.replace('https', 'wss') + '/socket')
	socket.onmessage = (m) => {
		out.socket = m.data
		document.getElementById('out').textContent = JSON.stringify(out)
	}
	socket.onclose = () => (out.socket ? (document.title = 'closed') : again('the socket is closed'))
	socket.onopen = () => socket.send('hello')
	navigator.serviceWorker?.register('/worker.js').catch(() => 0)
})().catch(again)
</script>`

func main() {
	of := os.Getenv("PAGE")
	http.HandleFunc("/lab", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie", "__Host-gbatch=stolen; Path=/; Secure; HttpOnly")
		w.Header().Set("Clear-Site-Data", `"cookies"`)
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, page)
	})
	http.HandleFunc("/heard", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"cookie": r.Header.Get("Cookie"), "authorization": r.Header.Get("Authorization"), "host": r.Host, "origin": r.Header.Get("Origin")})
	})
	http.HandleFunc("/socket", func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		for {
			kind, data, err := c.Read(context.Background())
			if err != nil || c.Write(context.Background(), kind, append([]byte("heard "), data...)) != nil {
				return
			}
		}
	})
	fmt.Printf("or http://%s:8888/lab?token=abc&page=%s\n", "notebook-0", of)
	fmt.Fprintln(os.Stderr, http.ListenAndServe("127.0.0.1:8888", nil))
	os.Exit(1)
}
