# %% [markdown]
# # GraphRAG over a small film graph
#
# Follows docs/graphrag.md. Start it in the repository's root.

# %%
import spaseq

films = spaseq.paths.load("spaseq/samples/films.ttl")
print(films)

# %% [markdown]
# What may be meant by a name? The best candidate first; where none fits, those that are spelled like it.

# %%
for name in ("Ines Rowe", "Inez Row"):
    print(name, [(found.label, found.score, found.by) for found in films.link(name, k=2)])

# %% [markdown]
# Which relations lead away from there? This is what a language model plans with.

# %%
print(films.relations_of("Ines Rowe", hops=2).text())

# %% [markdown]
# The paths that the plan names, the best for the question first.

# %%
found = spaseq.paths.retrieve(
    films,
    [["^starred", "release_year"]],
    "Ines Rowe",
    question="In which years were the films of Ines Rowe released?",
)
for ranked in found:
    print(f"{ranked.score:.2f}", ranked.text)

# %% [markdown]
# The facts, as the model reads them.

# %%
print(found.text())

# %% [markdown]
# The same with LangChain, which asks the model for the topics and the plan. A fake model stands in for it.

# %%
from langchain_core.language_models import FakeListChatModel

from spaseq.paths.langchain import SpaseqRetriever

model = FakeListChatModel(responses=['["Winter Ferry"]', '[["directed_by", "^starred"]]'])
retriever = SpaseqRetriever(graph=films, model=model)
for document in retriever.invoke("In which films did the director of Winter Ferry star?"):
    print(document.page_content)
