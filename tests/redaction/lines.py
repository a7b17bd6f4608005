"""A corpus of lines with the kinds of personal data or secrets in them; negative lines have none.

A broken bar is removed from a line: without it, scanners would find keys in this file.
"""

PII = """
email | Write to ann.lee@example.com before noon.
email | Contact: j_doe+news@mail.co.uk
email | <b>o'brien@school.edu</b>
email | mailto:kim@sub.domain.org?subject=hi
email | E-Mail: jürgen@müller.de
email email | From a@b.io to c@d.io
email | {"user": "x.y@z.company"}
email | (me@work.museum)
email | "first.last@xn--bcher-kva.example"
phone | Call me at +1 415 555 2671.
phone | +44 20 7946 0958
phone | Our London office: +44 (0)20 7946 0958
phone | +49 30 901820
phone | +49-151-23456789
phone | +33 1 42 68 53 00
phone | +91 98765 43210
phone | +86 138 0013 8000
phone | +61 412 345 678
phone | +353 85 012 3456
phone | 0049 30 901820
phone | (212) 555-0147
phone | 212-555-0147
phone | 212.555.0147
phone | 1-800-275-2273
phone | Phone: 4155552671
phone | tel. 030 901820
phone | mobile 07700 900123
phone | 020 7946 0958
phone | 01 42 68 53 00
phone | 01.42.68.53.00
phone | 0412 345 678
phone | (11) 91234-5678
phone | 090-1234-5678
phone | 0171/1234567
phone | Fax: 555-0142
phone phone | +14155552671, +442079460958
phone | WhatsApp: 98765 43210
card | 4111 1111 1111 1111
card | 4111-1111-1111-1111
card | My visa is 4012888888881881, valid to 05/29.
card | 5555555555554444
card | 2223003122003222
card | 378282246310005
card | 3782 822463 10005
card | 6011111111111117
card | 3056 930902 5904
card | 3530111333300000
card | 6200000000000005
card | card number: 6759649826438453
iban | GB82 WEST 1234 5698 7654 32
iban | DE89370400440532013000
iban | Pay to FR14 2004 1010 0505 0001 3M02 606 today.
iban | NL91ABNA0417164300
iban | NO93 8601 1117 947
iban | IBAN:CH9300762011623852957
us_ssn | SSN 123-45-6789
us_ssn | 536-90-4399
us_ssn | social security number: 536904399
us_ssn | My SSN is 536 90 4399.
uk_nino | NI number AB 12 34 56 C
uk_nino | JG103759A
canada_sin | SIN: 046 454 286
spain_dni | DNI 12345678Z
spain_dni | NIE: X1234567L
brazil_cpf | CPF 529.982.247-25
brazil_cpf | cpf 52998224725
france_nir | 2 55 08 14 168 025 38
italy_codice_fiscale | RSSMRA85T10A562S
india_aadhaar | Aadhaar: 2341 2341 2346
china_resident_id | 身份证号 11010519491231002X
china_resident_id | 身份证号11010519491231002X。
passport_mrz | L898902C36UTO7408122F1204159ZE184226B<<<<<10
ip_address | 203.0.113.42 logged in at 10:03
ip_address | The visitor logged on from 91.20.31.4 yesterday.
email | It is j dot horak at firma dot cz
 | We upgraded from 4.1.20.3 yesterday.
ip_address | Client 192.168.1.17 connected.
ip_address | http://8.8.8.8:8080/path
ip_address | server to 10.1.2.3
ip_address | 2001:db8:85a3::8a2e:370:7334
ip_address | [2001:db8::1]:443
ip_address | fe80::1ff:fe23:4567:890a
email phone | Ann <ann@corp.com>, +1 (212) 555-0100
email ip_address | root@host.example.com from 198.51.100.7
 | The meeting is on 2024-05-17 at 14:30.
 | 17.05.2024 and 05/17/2024
 | Order number 4111111111111111 has shipped.
 | Invoice 5555555555554444
 | Order 100-2345678-9012345
 | tracking: 1Z999AA10123456784
 | ISBN 978-3-16-148410-0
 | ISBN-13: 9783161484100
 | 4111 1111 1111 1112
 | 1234567890123456
 | 0000 0000 0000 0000
 | 9999999999999995
 | pi is 3.14159265358979323846
 | 1700000000000 ms since the epoch
 | 1718040000
 | Population: 331,449,281
 | 1,234,567.89 dollars
 | $4155552671
 | version 1.2.3.4
 | v10.0.0.1
 | upgrade from 4.18.0.15 to 4.18.0.16
 | Windows 10.0.19041.1
 | section 3.2.1.4
 | 256.100.50.25
 | 127.0.0.1
 | 0.0.0.0:8000
 | mask 255.255.255.0
 | 10.0.0.0/8
 | 12:30:45
 | 00:1a:2b:3c:4d:5e
 | std::vector<int> and fade::add
 | a::b::c
 | ::1
 | sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
 | commit 4f2c9a1d8e7b6c5a4f3e2d1c0b9a8f7e6d5c4b3a
 | 550e8400-e29b-41d4-a716-446655440000
 | 12345678-1234-5678-1234-567812345678
 | GB82 WEST 1234 5698 7654 31
 | DE8937040044053201300
 | XX82WEST12345698765432
 | 000-12-3456
 | 666-12-3456
 | 912-34-5678
 | 123-00-4567
 | 123-45-0000
 | 078-05-1120
 | 536904399
 | BG123456A
 | 12345678A
 | 529.982.247-24
 | 111.111.111-11
 | 2 55 08 14 168 025 39
 | RSSMRA85T10A562T
 | L898902C36UTO7408122F1204159ZE184226B<<<<<11
 | logo@2x.png
 | your_email@example.com
 | npm install react@18.2.0
 | git@github.com:org/repo.git
 | @handle on social media
 | user@localhost
 | a@b
 | https://ann:s3cr3t@host.example.com/db
 | foo..bar@example.com
 | 2 + 2 = 4
 | The score was 112-98-105 after overtime.
 | lat 52.520008, long 13.404954
 | 40.7128, -74.0060
 | 10 20 30 40 50 60 70 80 90
 | 1 2 3 4 5 6 7 8 9 10 11 12
 | 2019-2020-2021
 | pages 100-110, 200-210
 | 123-456-7890
 | 212-155-0147
 | Ticket #2125550147
 | part no. 212-555-0147
 | item 020 7946 0958
 | +1 2 = 3
 | +999 1234567
 | +1 115 555 2671
 | a+1234567890b
 | 046 454 286
 | 2341 2341 2345
 | room 12, floor 3, 1600 Pennsylvania Avenue
 | RFC 5321 and ISO 8601-1:2019
 | 100000000
 | 4012-8888-8888-1882
 | 49927398716
 | x = 4111111111111111.5
 | model no 378282246310005
 | IMEI 490154203237518
 | 1.0.0-rc.1+build.20240517
 | 555-0142
 | The call took 12345678 cycles.
""".strip("\n").splitlines()

SECRETS = r"""
aws_access_key | AKIA¦Z7QW2MKX5RTB6PLN
aws_access_key | export AWS_ACCESS_KEY_ID=ASIA¦QX4MNB7RTY2WPL5K
assigned_secret | aws_secret_access_key = "wJ4lrXUtn8EMIK7MDENGbPxRfiCYz9Qk3LmT¦a2Bd"
slack_token | xoxb-¦123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx
slack_token | xoxp¦-2345678901-abcdef0123456789abcdef
webhook | https://hooks.slack.com/services/T0¦1ABCDEF/B01ABCDEF/a1B2c3D4e5F6g7H8i9J0k1L2
stripe_key | sk_live_¦4eC39HqLyjWDarjtT1zdp7dc
stripe_key | rk_test_¦51HcxyzAbCdEfGhIjKlMn
google_key | AIza¦SyD4f7GhJk2LmN9pQrStUvWxYz01a3B5c6E
openai_key | sk-¦proj-aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5zA7
openai_key | OPENAI_API_KEY=sk-¦a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4
anthropic_key | sk-ant-¦api03-Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2Ji1Hg0Fe9Dc8Ba7
huggingface_token | hf_¦QwErTyUiOpAsDfGhJkLzXcVbNmQwErTyUi
gitlab_token | glpat-¦x7Yz9Ab3Cd5Ef1Gh2Ij4
npm_token | npm_¦a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8
sendgrid_key | SG.¦ngeVfQFYQlKU0ufo8x5d1A.TwL2iGABf9DHoTf09kqeF8tAmbihYzrnopKc1s5cr3s
twilio_key | SK¦0123abcd4567ef890123abcd4567ef89
digitalocean_token | dop_v1_¦0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
telegram_token | 123456789¦:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsawa
groq_key | gsk_¦a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4yz12
github_token | github_pat_¦11ABCDEFG0aBcDeFgHiJk1_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4yz123456789
jwt | eyJ¦hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjMifQ.dGhpc2lzbm90YXNpZ25hdHVyZQ
password_in_url | postgres://app:h8Kd2!pq@db.internal:5432/main
password_in_url | redis://:n0tEasy77@cache:6379/0
password_in_url | mongodb+srv://root:Tr0ub4dor@cluster0.mongodb.net
bearer_token | Authorization: Bearer a8f5f167f44f4964e6c998dee827110c
password | password = "hunter2!"
password | DB_PASSWORD: 's3cr3t-pw'
password | "passwd": "Winter2024"
password | PGPASSWORD=x9Kq2mPz psql
password | The password is Tr0ub4dor&3.
password | MYSQL_ROOT_PASSWORD=Zk8pLq3v
assigned_secret | api_key = "9f86d081884c7d659a2feaa0c55ad015"
assigned_secret | client_secret: Gx7kP2mQ9rT4vW1z
assigned_secret | const apiKey = 'b7Hd92Kx0Lq4Zt8V';
assigned_secret | SECRET_KEY=django-1nsecur3-k3y9x8z7
assigned_secret | "access_token": "ya30b9Kx72Lm4Qp8"
assigned_secret | auth_token => 'd41d8cd98f00b204e980'
assigned_secret | My API key is q8Zr4Tn2Lx9Vb7Kd1
assigned_secret | AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq==
assigned_secret | x-api-key: 3e2a1b9c8d7f6e5a4b3c
assigned_secret | token: 550e8400-e29b-41d4-a716-446655440000
openrouter_key | sk-or-v1-¦eee65f53e9421ce50211670eae679f02e8d28a79023c39c200661fccd268a29a
xai_key | xai-¦a9AW7hipTgadDZFlRJmCGmUXiAPyhzAnar3ZLt4bnlz2MPKgcjnCqaXNv1syeefnLOpaMxxNDi9LE1Ki
perplexity_key | pplx-¦3ylOjt6o0NpUmkVO8JmR8y4EMfAdggcG9qpVTzqA05MFsHl7
replicate_token | REPLICATE: r8_¦UeioEJP2NNern66nVberACpdclsxHKifxi5Cv
together_key | tgp_v1_¦QUSHL8iLc7bE6wSt9cbMOeEeUtuieeCIxVc57VVTiY9
fireworks_key | fw_¦6vwfRE5e32A8Yb3FKaNQyyLa
langsmith_key | lsv2_pt_¦22238daceee2092f073ff80b9465aef7_ac86d66c7a
databricks_token | dapi¦644fb12853ef86dcfaea21818b904ce6-2
langfuse_key | sk-lf-¦087413e3-b266-f850-f157-8b5c72dc4ee6
nvidia_key | nvapi-¦O46ayJKP4GY08vDuPngU30ZP7Thnp5yftIY7uq6T2bwGfcCvJAXrF6bnZ3eBZclI
aws_access_key | https://x.example.org/AKIA¦Z7QW2MKX5RTB6PLN/run
huggingface_token | token+hf_¦vRY6iEjH5UH1RSC84FL8SfWoCHJs1UJOkH
telegram_token | https://api.telegram.org/bot123456789¦:AG16JqtQy9235Nnt2j9IHrKFmAIhGaMybIc/sendMessage
assigned_secret | AZURE_OPENAI_KEY=¦c3f252edc87ff4adfa36d0840164709a
assigned_secret | OPENAI_KEY: ¦UwpNFgFULh2GNqTmSH4BbyOA
assigned_secret | api_key=short1
assigned_secret | 'client_secret': 'abc123'
password | {\"password\": \"hunter22x\"}
assigned_secret | {\\\"api_key\\\": \\\"¦0HNkIn3OIOnHn2INL2io6VOZ\\\"}
assigned_secret | {"token": {"value": "¦w5luMu57mnXm4gi4piUf"}}
assigned_secret | {"secret": ["¦qygB18AIYTimzORZbgmK"]}
assigned_secret | secret_key = nxDZiweJLraSzvu¦XZJxJCLOa
password | {"DB_PASS": "hunter2"}
password | DB_PASS=hunter2 ./run
password | pw: hunter2
password | "password": 12345678}
password | The password is 90817263
cookie | Cookie: theme=dark; session=¦Rw609xhTGOWvGR1mZeEgbcWJNG5KEjml
cookie | Set-Cookie: sid=¦hnl1ks7RgLdi8RDeWguzDBGw; Path=/; HttpOnly
signed_url | https://x.blob.core.windows.net/c/f?sv=2020-08-04&sig=¦BnMxaOSc2mlADxVxz6mMkgGYau5fZ1T436O8zKMmGLv%3D
signed_url | ?X-Amz-Expires=300&X-Amz-Signature=¦8835c4abd5c652a9f30b1789a6c52cf63c03378ec16c03888ad3e21c5cf5f1df
basic_auth | Authorization: Basic ¦YW5uOmh1bnRlcjI=
bearer_token | authorization: bearer ¦AsHzMtxHsEPrJ7sQTVsbaXpLcOkAWRyd
password | curl -s -u admin:¦S3cretPass99 https://x.example.org
password | curl --user ann:¦hunter2 https://x.example.org
 | AKIAIOSFODNN7EXAMPLE
 | wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY
 | api_key = "YOUR_API_KEY"
 | api_key = "<your key here>"
 | api_key = os.environ["API_KEY"]
 | api_key = os.getenv("OPENAI_API_KEY")
 | apiKey: process.env.API_KEY
 | password = "xxxxxxxx"
 | password = "********"
 | password: ${DB_PASSWORD}
 | password = get_password()
 | password = None
 | password: string
 | "password": "string"
 | "password": {"type": "string"}
 | The password must be at least 12 characters long.
 | Password: required
 | Enter your password: then press return.
 | reset your password at /account/password
 | max_tokens = 4096
 | token_count: 12345678901234567890
 | tokens: 1234
 | the token is invalid
 | secret: the recipe is butter
 | secret = settings.SECRET_KEY
 | token = response.headers.authorization
 | sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
 | sk-...
 | sk_live_xxxxxxxxxxxxxxxxxxxxxxxx
 | ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
 | ghp_short
 | AIzaShort
 | sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
 | commit 4f2c9a1d8e7b6c5a4f3e2d1c0b9a8f7e6d5c4b3a
 | id: 550e8400-e29b-41d4-a716-446655440000
 | https://example.com/path?id=a8f5f167f44f4964e6c998dee827110c
 | postgres://user:password@localhost/db
 | postgres://user:<password>@localhost/db
 | postgres://localhost:5432/db
 | http://host:8080/a@b
 | https://user@host.com
 | eyJub3QiOiJhIGp3dCJ9
 | eyJhbGciOiJIUzI1NiJ9.not-json.x
 | Bearer token authentication is required
 | Bearer <token>
 | Bearer abcdefghijklmnopqrstuvwxyz
 | eyJub3RqOiJhIn.eyJzdWIiOiIxMjMifQ.dGhpc2lzbm90YXNpZ25hdHVyZQ
 | eyJhIjoxfQAAAA.eyJzdWIiOiIxMjMifQ.dGhpc2lzbm90YXNpZ25hdHVyZQ
 | data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk
 | ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7 me@host
 | -----BEGIN PUBLIC KEY-----
 | -----BEGIN CERTIFICATE-----
 | primary_key = "customer_id"
 | foreign key: orders.customer_id
 | public_key = "MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAK"
 | keyboard: qwerty12345
 | session_id = 8f14e45fceea167a5a36dedd4bea2543
 | password_hash_rounds = 12
 | SKU SK1234567
 | The key to success is patience2024
 | secret_name: projects/p1/secrets/db
 | access_token_url: https://auth.example.com/token
 | token_type: bearer
 | A passphrase is a row of words.
 | pwd: /home/ann/work1
 | token: 5
 | {"token": 5, "max_tokens": 4096, "prompt_tokens": 12345678}
 | {"key": "a1b2c3d4e5f6g7h8", "value": 3}
 | map_key=abc123def456
 | cache_key: user42settings99
 | {"token": {"id": 31373, "text": "hello", "logprob": -0.25}}
 | "tokens": ["hello1", "world2"]
 | "token": ["The", "cat"]
 | Passwords must have 12 characters, 1 digit and 1 sign; a password: 8 to 64 characters.
 | password policy: rotate every 90days
 | password_min_length=12
 | {"pass": 1200, "fail": 3}
 | {"pass": "partial", "passed": true, "pass_rate": 0.95}
 | pass: 2 of 3, pass@10=0.85
 | first pass: step2b
 | bypass=route66
 | pw = None
 | git commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b
 | https://github.com/a/b/commit/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b
 | trace_id=4bf92f3577b34da6a3ce929d0e0e4736
 | uuid: 123e4567-e89b-12d3-a456-426614174000
 | /9j/4AAQSkZJRgABAQEASABIAAD/2wBDAAgGBgcGBQgHBwcJCQgKDBQNDAsLDBkSEw8UHRofHh0a
 | <img src="data:image/jpeg;base64,/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//sk/AKIA+x7Qz">
 | sk-learn-contrib-with-a-very-long-name-of-a-package
 | fw_update_firmware_to_the_next_version
 | fw_someVeryLongNameOfAFunction
 | r8_unorm_srgb_block
 | xai-explainable-artificial-intelligence-methods-survey
 | dapi.example.com/v1/status
 | Cookie: theme=dark; lang=en
 | cookie policy: we use 3 kinds
 | Authorization: Basic realm="x"
 | basic authorization is required
 | docker run -u 1000:1000 image
 | curl -u $USER:$PASSWORD https://x.example.org
 | curl -u user:password https://x.example.org
 | curl -u name: https://x.example.org
 | ?signature=none&sig=0
 | design=modern-2024-oak-table-and-chairs
 | api_key=config.key1
 | secret_key = aLongNameOfSomeFunction
 | private_key: SSHPrivateKeyTypes, password: bytes
 | api_key=get_key2(x)
 | access key: step2b
""".strip("\n").splitlines()


def rows(lines: list[str]) -> list[tuple[list[str], str]]:
    """Return the kinds in each line, in order, and its text."""
    pairs = (line.partition("|") for line in lines)
    return [(kinds.split(), text.strip().replace("¦", "")) for kinds, _, text in pairs]
