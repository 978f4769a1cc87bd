// A certified OpenID provider on loopback, for tests: node oidc_provider.mjs PORT CONSOLE. Anybody signs in with any password.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [port, console_] = process.argv.slice(2);
const resolve = createRequire(join(process.cwd(), "index.js")).resolve;
const { Provider } = await import(pathToFileURL(resolve("oidc-provider")));

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: "console",
      token_endpoint_auth_method: "none",
      redirect_uris: [`${console_}/`],
      grant_types: ["authorization_code"],
      response_types: ["code"],
      application_type: "native",
    },
  ],
  clientBasedCORS: () => true,
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  extraTokenClaims: (_, token) => ({ groups: token.accountId === "ada" ? ["moderators"] : [] }),
  ttl: { AccessToken: (_, token) => (token.resourceServer?.accessTokenTTL ?? 600) },
  features: {
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, resource) => ({
        scope: "openid",
        audience: resource,
        accessTokenTTL: 600,
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: "RS256" } },
      }),
      useGrantedResource: () => true,
      defaultResource: (_, __, oneOf) => oneOf?.[0],
    },
  },
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
