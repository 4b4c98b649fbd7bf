// Shows the API's document with Swagger UI.

const main = document.getElementById("documents");

window.SwaggerUIBundle({
  domNode: main,
  url: main.dataset.document,
  presets: [window.SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: "none",
  defaultModelsExpandDepth: 0,
  filter: true,
  // The badge would ask another host whether the document is valid.
  validatorUrl: null,
  // A key stays in this tab until it is closed or loaded again.
  persistAuthorization: false,
});
