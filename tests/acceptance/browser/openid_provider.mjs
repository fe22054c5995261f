// A certified OpenID provider (npm oidc-provider) with people of a test. Arguments: port, the farm's address, a file
// that holds {person: claims}; it is read anew at each sign-in.
import { readFileSync } from "node:fs";
import { Provider } from "oidc-provider";

const [port, farm, people] = process.argv.slice(2);
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{
    client_id: "farm",
    client_secret: "a-secret-of-the-tests",
    redirect_uris: [`${farm}/sign-in/openid/back/`],
    post_logout_redirect_uris: [`${farm}/sign-in/`],
  }],
  claims: { openid: ["sub"], profile: ["preferred_username", "name"], email: ["email", "email_verified"], groups: ["groups"] },
  scopes: ["openid", "profile", "email", "groups"],
  pkce: { required: () => true },
  cookies: { keys: ["of the tests alone"] },
  findAccount: (_, sub) => ({
    accountId: sub,
    claims: () => ({ sub, ...JSON.parse(readFileSync(people, "utf8"))[sub] }),
  }),
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
