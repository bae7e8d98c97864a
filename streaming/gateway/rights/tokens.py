"""Who may ask for delegation tokens of others, and see which (KafkaApis, KIP-373).

That nobody asks who has not proved himself who he is, is not a matter of rights
(`streaming.gateway.delegation_tokens`).
"""

from __future__ import annotations

from state.protocol_errors import ProtocolError
from streaming.gateway.delegation_tokens import not_created, owner_of, principals_of
from streaming.gateway.rights.asked import Asked, Refused, Verdict, then
from streaming.security.acls import Operation, ResourceType
from streaming.wire.schema_codec import Body


def create(asked: Asked) -> Verdict:
    """Let who asks have a token for somebody else if he may create tokens of that user."""
    requester = asked.client.principal
    owner = owner_of(asked.body) or requester
    if owner == requester or not asked.client.proven:
        return None
    if asked.may(Operation.CREATE_TOKENS, ResourceType.USER, owner):
        return None
    error = ProtocolError.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    return Refused(not_created(error, owner, requester))


def describe(asked: Asked) -> Verdict:
    """Show everybody the tokens that he owns or may renew, and others as he may describe them
    (DelegationTokenManager.filterToken).
    """

    def may_see(token: Body) -> bool:
        (owner,) = principals_of([token])
        if asked.client.principal in (owner, *principals_of(token["renewers"])):
            return True
        by_token = (Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token["token_id"])
        by_owner = (Operation.DESCRIBE_TOKENS, ResourceType.USER, owner)
        return asked.may(*by_token, told=False) or asked.may(*by_owner, told=False)

    return then(None, lambda answer: answer | {"tokens": list(filter(may_see, answer["tokens"]))})
