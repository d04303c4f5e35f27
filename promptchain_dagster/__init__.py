"""Fixed chains of model calls with a gate after every step: the core, which knows no orchestrator.

`promptchain_dagster.pipelines` runs it with Dagster; `promptchain_dagster.testing` has the model
that tests want.
"""

from __future__ import annotations

from promptchain_dagster.blog_post import Brief, Outline, Variant, blog_post_chain
from promptchain_dagster.chain.accept import NOT_EMPTY, AcceptSpec, Bar, Criterion
from promptchain_dagster.chain.chain import Chain
from promptchain_dagster.chain.guard import InputGuard, OneLine
from promptchain_dagster.chain.outcome import Attempt, Completed, Halted, Reason
from promptchain_dagster.chain.run import run_chain
from promptchain_dagster.chain.step import PromptStep, ToolStep
from promptchain_dagster.errors import (
    ChainDefinitionError,
    GuardRejection,
    InvalidInput,
    PromptChainError,
    StoreError,
)
from promptchain_dagster.models import (
    CallError,
    Calls,
    ChatModel,
    Completion,
    ModelSettings,
    Problem,
    Usage,
    connect,
)
from promptchain_dagster.prompts import PromptTemplate
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.chunking import Chunk, split_text
from promptchain_dagster.refine.collection import summarize_collection
from promptchain_dagster.refine.definition import Refine
from promptchain_dagster.refine.documents import Document, load_document
from promptchain_dagster.refine.fold import refine_document
from promptchain_dagster.refine.outcome import NoContent, Stopped, Summarized
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.refine.steps import summary_refine
from promptchain_dagster.store import Store, open_store

__all__ = [
    "NOT_EMPTY",
    "AcceptSpec",
    "Attempt",
    "Bar",
    "Brief",
    "CallError",
    "Calls",
    "Chain",
    "ChainDefinitionError",
    "ChatModel",
    "Checkpoints",
    "Chunk",
    "Completed",
    "Completion",
    "Criterion",
    "Document",
    "GuardRejection",
    "Halted",
    "InputGuard",
    "InvalidInput",
    "ModelSettings",
    "NoContent",
    "OneLine",
    "Outline",
    "Problem",
    "PromptChainError",
    "PromptStep",
    "PromptTemplate",
    "Reason",
    "Refine",
    "RefineSettings",
    "Stopped",
    "Store",
    "StoreError",
    "Summarized",
    "ToolStep",
    "Usage",
    "Variant",
    "blog_post_chain",
    "connect",
    "load_document",
    "open_store",
    "refine_document",
    "run_chain",
    "split_text",
    "summarize_collection",
    "summary_refine",
]
