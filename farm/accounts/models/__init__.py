from farm.accounts.models.event import AuditEvent
from farm.accounts.models.group_role import GroupRole
from farm.accounts.models.invitation import Invitation
from farm.accounts.models.linked_account import LinkedAccount
from farm.accounts.models.secrets import SignInLink, Token
from farm.accounts.models.share import Share
from farm.accounts.models.team import Membership, OwnedQuerySet, Team
from farm.accounts.models.tick import Tick
from farm.accounts.models.user import User
