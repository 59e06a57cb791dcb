// An identity provider for the tests: anybody is whoever they say, in the group hpc.
// The page is at the address of the second argument. It says its own address on standard output when it listens.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { createServer } from 'node:http';

const require = createRequire(process.argv[2] + '/x.js');
const { Provider } = await import(pathToFileURL(require.resolve('oidc-provider')));

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{
      client_id: 'gbatch', token_endpoint_auth_method: 'none', redirect_uris: [process.argv[3]], response_types: ['code'],
      grant_types: ['authorization_code', 'urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
    }],
    features: { deviceFlow: { enabled: true }, devInteractions: { enabled: true } },
    claims: { openid: ['sub'], profile: ['preferred_username', 'groups'] },
    conformIdTokenClaims: false,
    issueRefreshToken: async () => true,
    findAccount: (ctx, id) => ({ accountId: id, claims: async () => ({ sub: id, preferred_username: id, groups: ['hpc'] }) }),
  });
  server.on('request', provider.callback());
  console.log(issuer);
});
